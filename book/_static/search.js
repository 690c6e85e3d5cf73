// Which pages hold the words of a query. In place of Sphinx's own rule, which wants all of them and miscounts
// the short ones: a pasted message, with numbers and shapes of its own, would find little or nothing.
Search.performTermsSearch = (searchTerms, excludedTerms) => {
  const index = Search._index, count = index.docnames.length
  const listed = files => (files === undefined ? [] : [].concat(files))
  const beginning = (words, start) => {
    const longer = start.length < 3 ? [] : Object.keys(words).filter(word => word.startsWith(start))
    return longer.flatMap(word => listed(words[word]))
  }
  const filesOf = word => {
    const text = listed(index.terms[word]), titles = listed(index.titleterms[word])
    if (text.length || titles.length) return [text, titles]
    return [beginning(index.terms, word), beginning(index.titleterms, word)]
  }
  // A word that few pages have says more than one that all of them have. Unknown words say nothing.
  // In a pasted message the rare words are the reader's own shapes and names: there each word counts the same.
  const message = searchTerms.size > 4, needed = message ? 0.6 : 0.999
  const worth = new Map(), inTitle = new Map()
  let whole = 0
  for (const word of searchTerms) {
    const [text, titles] = filesOf(word), all = new Set([...text, ...titles])
    if (!all.size) continue
    const weight = message ? 1 : 0.1 + Math.log((count + 1) / all.size)
    whole += weight
    for (const file of all) worth.set(file, (worth.get(file) || 0) + weight)
    // The name of its file says what a page is about, where its title is a play on words.
    const named = file => word.length > 3 && index.docnames[file].includes(word)
    for (const file of all)
      if (named(file) || titles.includes(file)) {
        inTitle.set(file, (inTitle.get(file) || 0) + weight * (named(file) ? 2 : 1))
      }
  }
  const banned = new Set([...excludedTerms].flatMap(word => filesOf(word).flat()))
  const results = []
  for (const [file, weight] of worth) {
    if (banned.has(file) || weight < needed * whole) continue
    let score = (5 * weight + 5 * (inTitle.get(file) || 0)) / whole
    // A message leads to the page that tells messages apart, all else to chapters before long catalogues.
    const name = index.docnames[file]
    if (message && name === "book/errors") score += 5
    else if (!message && (!name.startsWith("notebooks/") || name.endsWith("_error_clinic"))) score *= 0.6
    results.push([name, index.titles[file], "", null, score, index.filenames[file]])
  }
  return results
}
