// The dock: what passes and what the server logs stays in view below the tool. It can be resized, and collapsed.
import { el, button, recall, remember } from './dom.js';

/** @typedef {{ name: string, title: string, element: HTMLElement, controls: HTMLElement, onshow: () => void }} Panel */

const lowestDock = 96, usualDock = 208, dockStep = 24; // pixels of its height

/** Dock shows one of its panels. */
export class Dock {
  /** @param {Panel[]} panels */
  constructor(panels) {
    this.panels = panels;
    this.chosen = recall('dock') || panels[0].name;
    this.isOpen = recall('dock is open') !== 'no';
    this.sheet = new CSSStyleSheet(); // the policy of the page takes no styles of elements
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.sheet];
    /** @type {Map<string, HTMLButtonElement>} */
    this.tabs = new Map(panels.map(({ name, title }) => {
      return [name, button(title, () => this.open(name))];
    }));
    this.fold = button('', () => this.toggle(), { class: 'small fold' });
    this.edge = el('div', { class: 'edge', role: 'separator', tabindex: 0, 'aria-orientation': 'horizontal', 'aria-label': 'Height of the dock', 'aria-valuemin': lowestDock,
      onpointerdown: (/** @type {PointerEvent} */ event) => this.drag(event), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) });
    this.element = el('section', { class: 'dock', 'aria-label': 'Log and wire' }, this.edge,
      el('div', { class: 'dockbar' }, el('nav', { class: 'tabs', 'aria-label': 'Dock' }, ...this.tabs.values()), ...panels.map(one => one.controls), this.fold),
      ...panels.map(one => one.element));
    this.setHeight(Number(recall('dock height')) || usualDock);
    this.update();
  }

  /** @param {string} name of a panel */
  open(name) {
    this.chosen = name;
    this.isOpen = true;
    this.keep();
  }

  toggle() {
    this.isOpen = !this.isOpen;
    this.keep();
  }

  keep() {
    remember('dock', this.chosen);
    remember('dock is open', this.isOpen ? 'yes' : 'no');
    this.update();
  }

  update() {
    this.element.classList.toggle('folded', !this.isOpen);
    this.fold.textContent = this.isOpen ? 'Fold' : 'Unfold';
    this.fold.setAttribute('aria-label', this.isOpen ? 'Fold the dock' : 'Unfold the dock');
    for (const { name, element, controls, onshow } of this.panels) {
      const isShown = this.isOpen && name === this.chosen;
      const isNew = isShown && element.hidden;
      element.hidden = controls.hidden = !isShown;
      this.tabs.get(name)?.setAttribute('aria-pressed', String(isShown));
      if (isNew) {
        this.tell(name, 0);
        onshow();
      }
    }
  }

  /**
   * tell says at the tab how much of a panel nobody has seen.
   * @param {string} name
   * @param {number} n
   */
  tell(name, n) {
    const tab = this.tabs.get(name);
    if (n > 0) tab?.setAttribute('data-unseen', String(n));
    else tab?.removeAttribute('data-unseen');
  }

  /** @param {string} name */
  isSeen(name) { return this.isOpen && this.chosen === name; }

  /** @param {number} height in pixels */
  setHeight(height) {
    this.height = Math.round(Math.min(Math.max(height, lowestDock), Math.max(lowestDock, innerHeight * 0.7)));
    this.sheet.replaceSync(`:root { --dock: ${this.height}px }`);
    this.edge.setAttribute('aria-valuenow', String(this.height));
    this.edge.setAttribute('aria-valuemax', String(Math.round(innerHeight * 0.7)));
  }

  /** @param {PointerEvent} event */
  drag(event) {
    event.preventDefault();
    const from = event.clientY, height = this.element.getBoundingClientRect().height;
    const move = (/** @type {PointerEvent} */ at) => this.setHeight(height + from - at.clientY);
    this.edge.setPointerCapture(event.pointerId);
    this.edge.addEventListener('pointermove', move);
    this.edge.addEventListener('lostpointercapture', () => {
      this.edge.removeEventListener('pointermove', move);
      remember('dock height', String(this.height));
    }, { once: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = { ArrowUp: dockStep, ArrowDown: -dockStep }[event.key];
    if (!by) return;
    event.preventDefault();
    this.setHeight((this.height ?? usualDock) + by);
    remember('dock height', String(this.height));
  }
}
