// Paper is white: print the light mode, drawings included, and come back to what was on the screen.
(() => {
  const page = document.documentElement.dataset
  let shown = null
  matchMedia("print").addEventListener("change", event => {
    if (event.matches) {
      shown = page.theme
      page.theme = "light"
    } else if (shown) {
      page.theme = shown
    }
  })
})()
