// Builds the link that copies the chapters onto a JupyterHub. Nothing is sent anywhere.
(() => {
  const form = document.getElementById('hub-link')
  if (!form) return
  const [address, repo, chapter] = ['hub-address', 'hub-repo', 'hub-chapter'].map(id => document.getElementById(id))
  const says = document.getElementById('hub-says')
  const branch = 'launch'

  // The site knows its own repository where it was published from one.
  const known = document.querySelector('a.btn-source-repository-button')
  if (known) repo.value = known.href

  // The chapters, in their order, as the list of pages has them.
  const seen = new Set()
  for (const link of document.querySelectorAll('nav a[href*="notebooks/"]')) {
    const found = /notebooks\/(\w+)\.html$/.exec(link.getAttribute('href'))
    if (!found || seen.has(found[1])) continue
    seen.add(found[1])
    chapter.add(new Option(link.textContent.trim(), found[1]))
  }

  const web = text => {
    try {
      const url = new URL(text.trim())
      return /^https?:$/.test(url.protocol) ? url : null
    } catch {
      return null
    }
  }

  const show = () => {
    const hub = web(address.value)
    const source = web(repo.value)
    if (!hub || !source) {
      says.textContent = 'Fill in two addresses that begin with https://, and the link appears here.'
      return
    }
    const where = source.href.replace(/\/+$/, '').replace(/\.git$/, '')
    const folder = where.split('/').pop()
    const query = new URLSearchParams({
      repo: where,
      branch,
      urlpath: `lab/tree/${folder}/notebooks/${chapter.value}.ipynb`,
    })
    const link = document.createElement('a')
    link.href = `${hub.origin}${hub.pathname.replace(/\/+$/, '')}/hub/user-redirect/git-pull?${query}`
    link.textContent = link.href
    says.replaceChildren('Give your class this link: ', link)
  }

  form.addEventListener('input', show)
  form.addEventListener('submit', event => event.preventDefault())
  form.hidden = false
  show()
})()
