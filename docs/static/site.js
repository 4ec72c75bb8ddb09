// The theme's arrows that open a part of the sidebar have no text: a screen reader says these words.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("nav summary:not([aria-label])")) {
    const link = arrow.closest("li")?.querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${link ? link.textContent.trim() : "this"}`);
  }
});
