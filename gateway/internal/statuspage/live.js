// Gets the page again when the server says that it has changed. There is one request at a
// time, and none while nobody looks.
'use strict';

const retryAfter = 15000;
const state = document.getElementById('live-state');
let source, retry, later, busy = false;

const say = text => { if (state.textContent !== text) state.textContent = text; };

function connect() {
  clearTimeout(retry);
  source?.close();
  const seen = document.getElementById('live').dataset.sum;
  source = new EventSource(`${document.body.dataset.events}?seen=${encodeURIComponent(seen)}`);
  source.onopen = () => say('live');
  source.onmessage = refresh;
  source.onerror = () => {
    say('not live: no answer');
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(connect, retryAfter);
  };
}

async function refresh() {
  clearTimeout(later);
  if (busy || selecting()) {
    later = setTimeout(refresh, 2000);
    return;
  }
  busy = true;
  try {
    const answer = await fetch(location.href, { cache: 'no-store' });
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (next.getElementById('live')) show(next);
  } catch {
    say('not live: no answer');
  }
  busy = false;
}

// Nobody loses what they select or type.
function selecting() {
  return !document.getSelection().isCollapsed || document.activeElement?.closest('form');
}

function show(next) {
  const focused = document.activeElement?.id;
  const scrolled = [...document.querySelectorAll('.scroll')].map(e => e.scrollLeft);
  if (document.title !== next.title) {
    document.title = document.getElementById('news').textContent = next.title;
    document.querySelector('link[rel=icon]').href = next.querySelector('link[rel=icon]').href;
  }
  document.getElementById('live').replaceWith(document.adoptNode(next.getElementById('live')));
  document.querySelectorAll('.scroll').forEach((e, i) => { e.scrollLeft = scrolled[i] ?? 0; });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) return connect();
  clearTimeout(retry);
  clearTimeout(later);
  source.close();
  say('paused');
});
connect();
