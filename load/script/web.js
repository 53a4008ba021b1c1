// What browsers have and JavaScript itself has not, written in it. The
// argument is what only the host can do.
(function (host) {
  'use strict';

  const encode = (text) => encodeURIComponent(text).replace(/%20/g, '+')
    .replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
  const decode = (text) => host.unescape(text.replace(/\+/g, ' '));

  class URLSearchParams {
    #list = [];
    #changed = null; // told of every change, when a URL owns this

    constructor(init = '') {
      if (init === null || typeof init !== 'object') {
        this.#parse(String(init));
      } else if (typeof init[Symbol.iterator] === 'function') {
        for (const pair of init) {
          const [name, value, ...more] = pair;
          if (value === undefined || more.length > 0) throw new TypeError('URLSearchParams: want pairs of a name and a value');
          this.#list.push([String(name), String(value)]);
        }
      } else {
        for (const name of Object.keys(init)) this.#list.push([name, String(init[name])]);
      }
    }

    #parse(text) {
      this.#list = text.replace(/^\?/, '').split('&').filter((part) => part !== '').map((part) => {
        const at = part.indexOf('=');
        return at < 0 ? [decode(part), ''] : [decode(part.slice(0, at)), decode(part.slice(at + 1))];
      });
    }

    #touch() { if (this.#changed) this.#changed(this.toString()); }

    static _of(text, changed) { const p = new URLSearchParams(text); p.#changed = changed; return p; }
    static _reset(params, text) { params.#parse(text); }

    append(name, value) { this.#list.push([String(name), String(value)]); this.#touch(); }
    delete(name, value) {
      this.#list = this.#list.filter(([n, v]) => n !== String(name) || value !== undefined && v !== String(value));
      this.#touch();
    }
    get(name) { const found = this.#list.find(([n]) => n === String(name)); return found ? found[1] : null; }
    getAll(name) { return this.#list.filter(([n]) => n === String(name)).map(([, v]) => v); }
    has(name, value) { return this.#list.some(([n, v]) => n === String(name) && (value === undefined || v === String(value))); }
    set(name, value) {
      const at = this.#list.findIndex(([n]) => n === String(name));
      if (at < 0) this.#list.push([String(name), String(value)]);
      else {
        this.#list[at] = [String(name), String(value)];
        this.#list = this.#list.filter(([n], i) => i <= at || n !== String(name));
      }
      this.#touch();
    }
    sort() { this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#touch(); }
    forEach(fn, self) { for (const [name, value] of this.#list) fn.call(self, value, name, this); }
    get size() { return this.#list.length; }
    *entries() { for (const [name, value] of this.#list) yield [name, value]; }
    *keys() { for (const [name] of this.#list) yield name; }
    *values() { for (const [, value] of this.#list) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#list.map(([n, v]) => encode(n) + '=' + encode(v)).join('&'); }
  }
  const own = URLSearchParams._of, reset = URLSearchParams._reset;
  delete URLSearchParams._of;
  delete URLSearchParams._reset;

  class URL {
    #parts;
    #params = null;

    constructor(address, base) {
      this.#parts = host.parseURL(String(address), base === undefined ? undefined : String(base));
    }
    static canParse(address, base) {
      try { return Boolean(new URL(address, base)); } catch (e) { return false; }
    }
    static parse(address, base) { return URL.canParse(address, base) ? new URL(address, base) : null; }

    #set(name, value) {
      this.#parts = host.setURL(this.href, name, String(value));
      if (this.#params && (name === 'search' || name === 'href')) reset(this.#params, this.search);
    }

    get searchParams() {
      return this.#params ??= own(this.search, (text) => { this.#parts = host.setURL(this.href, 'search', text); });
    }
    get href() { return this.#parts.href; }
    set href(v) { this.#parts = host.parseURL(String(v)); if (this.#params) reset(this.#params, this.search); }
    get origin() { return this.#parts.origin; }
    get protocol() { return this.#parts.protocol; }
    set protocol(v) { this.#set('protocol', v); }
    get username() { return this.#parts.username; }
    set username(v) { this.#set('username', v); }
    get password() { return this.#parts.password; }
    set password(v) { this.#set('password', v); }
    get host() { return this.#parts.host; }
    set host(v) { this.#set('host', v); }
    get hostname() { return this.#parts.hostname; }
    set hostname(v) { this.#set('hostname', v); }
    get port() { return this.#parts.port; }
    set port(v) { this.#set('port', v); }
    get pathname() { return this.#parts.pathname; }
    set pathname(v) { this.#set('pathname', v); }
    get search() { return this.#parts.search; }
    set search(v) { this.#set('search', v); }
    get hash() { return this.#parts.hash; }
    set hash(v) { this.#set('hash', v); }
    toString() { return this.href; }
    toJSON() { return this.href; }
  }

  const uncloneable = (what) => {
    const e = new Error(`structuredClone: ${what} cannot be cloned`);
    e.name = 'DataCloneError';
    return e;
  };

  function clone(value, seen) {
    if (typeof value === 'function' || typeof value === 'symbol') throw uncloneable('a ' + typeof value);
    if (value === null || typeof value !== 'object') return value;
    if (seen.has(value)) return seen.get(value);
    const remember = (copy) => { seen.set(value, copy); return copy; };
    if (value instanceof Date) return remember(new Date(value.getTime()));
    if (value instanceof RegExp) return remember(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return remember(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = clone(value.buffer, seen);
      return remember(new value.constructor(buffer, value.byteOffset, value instanceof DataView ? value.byteLength : value.length));
    }
    if (value instanceof Map) {
      const copy = remember(new Map());
      for (const [k, v] of value) copy.set(clone(k, seen), clone(v, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = remember(new Set());
      for (const v of value) copy.add(clone(v, seen));
      return copy;
    }
    if (value instanceof Error) {
      const copy = remember(new Error(value.message));
      copy.name = value.name;
      return copy;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) throw uncloneable('a ' + value.constructor.name);
    const copy = remember(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
    return copy;
  }

  return {
    URL,
    URLSearchParams,
    structuredClone: (value) => clone(value, new Map()),
    queueMicrotask: (fn) => {
      if (typeof fn !== 'function') throw new TypeError('queueMicrotask: want a function, got ' + typeof fn);
      Promise.resolve().then(() => { fn(); });
    },
  };
})
