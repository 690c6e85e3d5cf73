// Which pages hold the words of a query, and how good they are. In place of Sphinx's own rule, which wants all of
// them, miscounts the short ones and knows no frequencies; search_data.js has what its index leaves out.
{
  const listed = files => (files === undefined ? [] : [].concat(files))
  const beginning = (words, start) => {
    const longer = start.length < 3 ? [] : Object.keys(words).filter(word => word.startsWith(start))
    return longer.flatMap(word => listed(words[word]))
  }
  const filesOf = word => {
    const index = Search._index, text = listed(index.terms[word]), titles = listed(index.titleterms[word])
    if (text.length || titles.length) return [text, titles]
    return [beginning(index.terms, word), beginning(index.titleterms, word)]
  }
  // How often a page says a word, or two neighbors, as a logarithm; undefined where that is next to never.
  const said = (key, page) => {
    const counts = Object.hasOwn(Search.data.counts, key) ? Search.data.counts[key] : []
    for (let i = 0; i < counts.length; i += 2) if (Search.data.pages[counts[i]] === page) return counts[i + 1]
  }
  // Numbers, quotes and spaces differ from message to message.
  const bare = text => text.toLowerCase().replace(/\d+/g, "0").replace(/['"`’\s]+/g, " ").trim()

  // A part of a message, three words at least, leads to its entry in the index of errors.
  const entriesWith = query => {
    const part = bare(query), index = Search._index, file = index.docnames.indexOf("book/errors")
    if (file < 0 || part.length < 18 || part.split(" ").length < 3) return []
    const found = Search.data.messages.filter(([, , ...texts]) => texts.some(text => bare(text).includes(part)))
    return found.slice(0, 5).map(([id, title], place) => [
      "book/errors", `${index.titles[file]} > ${title}`, `#${id}`, null, 60 - place, index.filenames[file]
    ])
  }

  let asked = ""
  const parse = Search._parseQuery
  Search._parseQuery = query => parse((asked = query))

  Search.performTermsSearch = (searchTerms, excludedTerms) => {
    const index = Search._index, count = index.docnames.length, words = [...searchTerms]
    // A word that few pages have says more than one that all of them have. Unknown words say nothing.
    // In a pasted message the rare words are the reader's own shapes and names: there each counts the same.
    const message = searchTerms.size > 4, needed = message ? 0.6 : 0.999
    const worth = new Map(), score = new Map()
    const add = (file, points) => score.set(file, (score.get(file) || 0) + points)
    let whole = 0
    words.forEach((word, place) => {
      const [text, titles] = filesOf(word), all = new Set([...text, ...titles])
      if (!all.size) return
      const weight = message ? 1 : 0.1 + Math.log((count + 1) / all.size)
      whole += weight
      for (const file of all) {
        const page = index.docnames[file], pair = said(`${words[place - 1]} ${word}`, page)
        worth.set(file, (worth.get(file) || 0) + weight)
        add(file, weight * (1 + (message ? 0 : 0.7 * (said(word, page) || 0))))
        // Two words that stand side by side mean more than each of them somewhere.
        if (!message && pair) add(file, weight * (1 + pair))
        // The name of its file says what a page is about, where its title is a play on words.
        if (word.length > 3 && page.includes(word)) add(file, 2 * weight)
        else if (titles.includes(file)) add(file, weight)
      }
    })
    const banned = new Set([...excludedTerms].flatMap(word => filesOf(word).flat()))
    const explained = Object.hasOwn(Search.data.terms, words.join(" ")) ? Search.data.terms[words.join(" ")] : []
    const results = entriesWith(asked)
    for (const [file, points] of score) {
      if (banned.has(file) || worth.get(file) < needed * whole) continue
      const page = index.docnames[file]
      let value = (5 * points) / whole
      if (explained.includes(page)) value = 1.5 * value + 5
      // A message leads to the page that tells messages apart, all else to chapters before long catalogues.
      if (message && page === "book/errors") value += 5
      else if (!message && (!page.startsWith("notebooks/") || page.endsWith("_error_clinic"))) value *= 0.5
      results.push([page, index.titles[file], "", null, value, index.filenames[file]])
    }
    const best = Math.max(0, ...results.map(result => result[4]))
    // What Sphinx finds by itself, titles, terms of the glossary and names of the helper, has other numbers:
    // those come right after the best page.
    const entry = (page, points) => page === "book/errors" && points > 50
    Scorer.score = ([page, , anchor, , points]) =>
      anchor && !entry(page, points) ? Math.min(points, best - 0.1) : points
    return results
  }
}
