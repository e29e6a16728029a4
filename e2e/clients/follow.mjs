// A browser for tests: it opens an address, and follows redirects with cookies to the end. It prints the address of the
// last page, and the page.
//
//   node follow.mjs URL
const cookies = new Map(); // by host and name
let at = new URL(process.argv[2]);
for (let hops = 0; hops < 20; hops++) {
  const cookie = [...cookies].filter(([key]) => key.startsWith(`${at.host} `)).map(([, pair]) => pair).join("; ");
  const res = await fetch(at, { redirect: "manual", headers: cookie ? { cookie } : {} });
  for (const line of res.headers.getSetCookie()) {
    const pair = line.split(";")[0];
    cookies.set(`${at.host} ${pair.split("=")[0]}`, pair);
  }
  const to = res.headers.get("location");
  if (!to) {
    console.log(res.status, at.href, await res.text());
    process.exit(res.ok ? 0 : 1);
  }
  await res.body?.cancel();
  at = new URL(to, at);
}
console.error("too many redirects");
process.exit(1);
