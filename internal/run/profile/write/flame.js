// SPDX-License-Identifier: Apache-2.0
'use strict';
(() => {
  const svg = document.querySelector('svg'), all = 1200;
  const frames = [...svg.querySelectorAll('g')].map((g) => {
    const rect = g.querySelector('rect'), name = g.dataset.name;
    const number = (name) => Number(rect.getAttribute(name));
    let label = g.querySelector('text');
    if (!label) {
      label = document.createElementNS(svg.namespaceURI, 'text');
      label.setAttribute('y', number('y') + 12);
      g.append(label);
    }
    g.setAttribute('tabindex', '0');
    g.setAttribute('role', 'button');
    return { g, rect, label, name, x: number('x'), w: number('width'), y: number('y') };
  });
  function zoom(to) {
    const from = to ? to.x : 0, by = all / (to ? to.w : all);
    frames.forEach((f) => {
      const left = Math.max(0, (f.x - from) * by), right = Math.min(all, (f.x + f.w - from) * by), wide = right - left;
      f.g.classList.toggle('off', wide < 0.05);
      f.rect.setAttribute('x', left);
      f.rect.setAttribute('width', Math.max(0, wide));
      f.label.setAttribute('x', left + 3);
      const fits = Math.floor(wide / 7), name = f.name;
      f.label.textContent = fits < 4 ? '' : name.length > fits ? name.slice(0, fits - 3) + '...' : name;
    });
  }
  frames.forEach((f) => {
    f.g.addEventListener('click', () => zoom(f));
    f.g.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' || e.key === ' ') {
        e.preventDefault();
        zoom(f);
      }
    });
  });
  document.getElementById('reset').addEventListener('click', () => zoom(null));
  document.getElementById('search').addEventListener('input', (e) => {
    const text = e.target.value.toLowerCase();
    let count = 0;
    frames.forEach((f) => {
      const hit = text !== '' && f.name.toLowerCase().includes(text);
      f.g.classList.toggle('hit', hit);
      count += hit;
    });
    document.getElementById('found').textContent = text === '' ? '' : count + ' frames';
  });
})();
