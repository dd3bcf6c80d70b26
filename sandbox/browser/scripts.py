"""What is evaluated in a page's isolated world: it sees the page's elements, never the page's scripts.

Every look-up is by the prototype's own function: an element named `querySelectorAll` hides the document's.
"""

from __future__ import annotations

WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
"""The axe tags that are judged: levels A and AA of WCAG 2.1; no best practices."""

AXE = """(async () => {
  const found = await axe.run(document, {
    runOnly: {type: 'tag', values: %(tags)s}, resultTypes: ['violations'], iframes: false,
    elementRef: false, selectors: true});
  return JSON.stringify(found.violations.slice(0, 40).map(one => ({
    id: String(one.id), impact: String(one.impact), nodes: one.nodes.length,
    target: String((one.nodes[0] || {target: ['']}).target).slice(0, 200)})));
})()"""
"""Run axe-core, which was evaluated before it."""

FACTS = """((canary) => {
  const all = (root, what) => [...Document.prototype.querySelectorAll.call(root, what)];
  const short = (text) => String(text || '').slice(0, 300);
  const here = new Set();
  const links = [];
  for (const one of all(document, 'a[href], area[href]')) {
    const url = short(one.href);
    if (/^https?:/.test(url) && !here.has(url) && links.length < 80) { here.add(url); links.push(url); }
  }
  const forms = all(document, 'form').slice(0, 10).map(form => ({
    action: short(form.getAttribute('action') === null ? location.href
      : new URL(form.getAttribute('action'), document.baseURI).href),
    method: short(form.getAttribute('method') || 'get').toLowerCase(),
    fields: all(document, 'input[name], textarea[name], select[name]').filter(one =>
      one.closest('form') === form && !['submit', 'button', 'file', 'image'].includes(one.type))
      .slice(0, 20).map(one => [short(one.getAttribute('name')), short(one.getAttribute('value'))])}));
  const able = 'a[href], button, input, select, textarea, summary, [tabindex], [contenteditable]';
  globalThis.qaOrder = all(document, able).filter(one => !one.disabled && one.tabIndex >= 0
    && one.type !== 'hidden' && one.getClientRects().length
    && getComputedStyle(one).visibility === 'visible').slice(0, 200);
  globalThis.qaReached = new Set();
  const at = new Set();
  for (const one of canary ? all(document, '*').slice(0, 5000) : []) {
    for (const given of [...one.attributes]) if (given.value.includes(canary))
      at.add(given.name.startsWith('on') ? 'script' : given.value.trim().startsWith(canary)
        && ['href', 'src', 'action', 'formaction', 'data'].includes(given.name) ? 'url' : 'attribute');
    if ([...one.childNodes].some(inner => inner.nodeType === 3 && inner.data.includes(canary)))
      at.add(one.localName === 'script' ? 'script' : 'text');
  }
  return JSON.stringify({title: short(document.title), links, forms, at: [...at].sort(),
    focusable: globalThis.qaOrder.length});
})(%(canary)s)"""
"""Title, links, forms, where the bare canary is, and the elements that a keyboard should reach."""

PRESS = """(async () => {
  const all = (what) => [...Document.prototype.querySelectorAll.call(document, what)];
  const seen = new Set();
  const value = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
  const area = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value');
  const said = {email: 'moss@example.com', password: 'Qa1!moss-moss-moss', url: 'https://example.com/',
    tel: '0151123456', number: '1', date: '2030-05-01', month: '2030-05', time: '12:00',
    'datetime-local': '2030-05-01T12:00', text: 'moss', search: 'moss', textarea: 'moss'};
  for (let pressed = 0; pressed < %(most)d; pressed++) {
    for (const one of all('input, textarea')) {
      const ticked = one.type === 'checkbox' && one.required;
      if (seen.has(one) || !(ticked || Object.hasOwn(said, one.type))) continue;
      seen.add(one);
      if (ticked) one.checked = true;
      else if (one.value) continue;
      else (one.type === 'textarea' ? area : value).set.call(one, said[one.type]);
      for (const name of ['input', 'change']) one.dispatchEvent(new Event(name, {bubbles: true}));
    }
    const next = all('button, [role=button], [role=tab], [role=menuitem], [onclick], input[type=submit],'
      + ' input[type=button], summary, a:not([href]), a[href^="#"], a[href^="javascript:"]')
      .find(one => !seen.has(one) && !one.disabled && one.getClientRects().length);
    if (!next) break;
    seen.add(next);
    try { next.click(); } catch {}
    await new Promise(done => setTimeout(done, %(pause)d));
  }
  return JSON.stringify(seen.size);
})()"""
"""Fill the empty fields of the page and press what can be pressed, each thing once."""

FOCUS = """((canary) => {
  const one = document.activeElement, at = globalThis.qaOrder.indexOf(one);
  if (at >= 0) globalThis.qaReached.add(at);
  const href = one && one.getAttribute ? String(one.getAttribute('href') || '') : '';
  const name = one && one.tagName ? one.tagName.toLowerCase() + (one.id ? '#' + one.id : '') : '';
  return JSON.stringify({at, reached: globalThis.qaReached.size, name: name.slice(0, 100),
    press: Boolean(canary) && /^\\s*javascript:/i.test(href) && href.includes(canary)});
})(%(canary)s)"""
"""Where the focus is after a Tab, and whether it is on a link that would run the canary."""
