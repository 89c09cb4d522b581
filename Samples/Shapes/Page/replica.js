// One scope, kept in step with the server's.
//
// `base` is what the server has said. Our own changes are sets that the server has not decided yet,
// the last of them a draft that is not sent yet. What is shown is the sets folded over the base; so
// a value that comes from others under a pending change of ours is remembered and not shown, and a
// set that is refused leaves nothing behind.

const SEND_INTERVAL = 40;

export class Replica {
  /**
   * @param {object} names what the scope consists of: `scope`, `root` (class), `list` (its property
   *   that holds the models), `model` (their class).
   * @param {(refused: string[]) => void} onChange called when there may be something new to show.
   */
  constructor(session, names, onChange) {
    this.session = session;
    this.names = names;
    this.onChange = onChange;
    this.base = null; // { root, properties, list: [uuid], models: Map of uuid to properties }
    this.sets = []; // sent: [{ index, adds, removes, changes, fragments }]
    this.draft = emptySet();
    this.draftedAt = 0;
  }

  // What is shown

  /** The scope as it is to be shown: { properties, list, models }, or null before it is there. */
  visible() { return this.base && fold(this.base, [...this.sets, this.draft]); }

  /** Whether the server has not decided everything yet. */
  get isPending() { return this.sets.length > 0 || !isEmpty(this.draft); }

  // Changing

  add(uuid, properties) {
    this.draft.removes.delete(uuid);
    this.draft.adds.set(uuid, properties);
    this.drafted();
  }

  remove(uuid) {
    this.draft.changes.delete(uuid);
    if (!this.draft.adds.delete(uuid)) this.draft.removes.add(uuid);
    this.drafted();
  }

  /** Changes properties of a model; without a uuid, of the root. */
  change(uuid, properties) {
    const { adds, changes } = this.draft;
    const key = uuid ?? ROOT;
    const target = adds.get(key) ?? changes.get(key) ?? {};
    Object.assign(target, properties);
    if (!adds.has(key)) changes.set(key, target);
    this.drafted();
  }

  drafted() {
    this.onChange([]);
    this.sendSoon();
  }

  /** At most one message in each interval, with all that has changed meanwhile. */
  sendSoon() {
    if (this.timer || isEmpty(this.draft)) return;
    const pause = this.draftedAt + SEND_INTERVAL - performance.now();
    this.timer = setTimeout(() => {
      this.timer = null;
      this.flush();
    }, Math.max(pause, 0));
  }

  /** Sends the draft, if the server can be reached; otherwise it goes on growing. */
  flush() {
    if (!this.session.isReady || !this.isLoaded) return;
    const set = this.draft;
    this.draft = emptySet();
    this.draftedAt = performance.now();
    this.dropMeaningless(set);
    if (!isEmpty(set)) this.submit(set);
  }

  /** Leaves out what is about models that others have removed. */
  dropMeaningless(set) {
    const { models } = fold(this.base, [...this.sets, set]);
    for (const uuid of set.changes.keys()) {
      if (uuid !== ROOT && !models.has(uuid)) set.changes.delete(uuid);
    }
    for (const uuid of set.removes) if (!models.has(uuid)) set.removes.delete(uuid);
  }

  submit(set) {
    this.sets.push(set);
    set.index = this.session.send(() => this.compose(set));
  }

  /** The message for a set. What it means for the list depends on what the base is by now. */
  compose(set) {
    const { root, model, list } = this.names;
    const fragments = [];
    const rootProperties = { ...set.changes.get(ROOT) };
    if (set.adds.size + set.removes.size > 0) {
      const end = this.sets.indexOf(set) + 1;
      rootProperties[list] = fold(this.base, this.sets.slice(0, end)).list;
    }
    for (const [uuid, properties] of set.adds) {
      fragments.push({ type: "add", uuid, clsName: model, properties });
    }
    for (const [uuid, properties] of set.changes) {
      if (uuid !== ROOT) fragments.push({ type: "change", uuid, clsName: model, properties });
    }
    if (Object.keys(rootProperties).length > 0) {
      const properties = rootProperties;
      fragments.push({ type: "change", uuid: this.base.root, clsName: root, properties });
    }
    set.fragments = fragments;
    return { type: "ScopeSync", scopeIndex: this.scopeIndex, atomic: false, fragments };
  }

  // The server's messages

  /** A new session: fetches the scope. What is pending waits for its state. */
  fetch() {
    this.scopeIndex = null;
    this.isLoaded = false;
    const message = { type: "ScopeFetch", name: this.names.scope, params: {} };
    this.fetchIndex = this.session.send(() => message);
  }

  receive(message) {
    switch (message.type) {
      case "ScopeFetchReply":
        if (message.replyTo !== this.fetchIndex) return;
        if (message.error) return this.onChange([message.error.message]);
        this.scopeIndex = message.scopeIndex;
        return;
      case "ScopeState":
        if (message.scopeIndex === this.scopeIndex) this.load(message);
        return;
      case "ScopeSync":
        // What comes in front of the state is contained in it.
        if (!this.isLoaded || message.scopeIndex !== this.scopeIndex) return;
        for (const fragment of message.fragments) this.apply(fragment);
        this.sweep();
        return this.onChange([]);
      case "ScopeSyncReply":
        return this.decide(message);
    }
  }

  load({ rootUUID, fragments }) {
    this.base = { root: rootUUID, properties: {}, list: [], models: new Map() };
    for (const fragment of fragments) this.apply(fragment);
    this.isLoaded = true;
    // What another session has not heard the end of goes out again, as far as it still has a
    // meaning.
    const unheard = this.sets;
    this.sets = [];
    for (const set of unheard) {
      for (const uuid of set.adds.keys()) if (this.base.models.has(uuid)) set.adds.delete(uuid);
      this.dropMeaningless(set);
      if (!isEmpty(set)) this.submit(set);
    }
    this.onChange([]);
  }

  /** Takes a fragment into the base. An addition of a known model sets its properties. */
  apply({ type, uuid, properties }) {
    uuid = uuid.toLowerCase();
    if (uuid === this.base.root) {
      const { [this.names.list]: list, ...rest } = properties;
      Object.assign(this.base.properties, rest);
      if (list) this.base.list = list.map((element) => element.toLowerCase());
    } else if (type === "add" || this.isKnown(uuid)) {
      this.base.models.set(uuid, { ...this.base.models.get(uuid), ...properties });
    }
  }

  isKnown(uuid) { return uuid === this.base.root || this.base.models.has(uuid); }

  /** Forgets the models that the list does not hold any more. */
  sweep() {
    const held = new Set(this.base.list);
    for (const uuid of this.base.models.keys()) if (!held.has(uuid)) this.base.models.delete(uuid);
  }

  /** The server has decided a set of ours: what it accepted counts from here on. */
  decide({ replyTo, fragmentReplies }) {
    const at = this.sets.findIndex((set) => set.index === replyTo);
    if (at < 0) return;
    const [{ fragments }] = this.sets.splice(at, 1);
    const isWhole = fragmentReplies.length === fragments.length;
    const refused = [];
    fragments.forEach((fragment, position) => {
      const reply = isWhole ? fragmentReplies[position] : fragmentReplies[0];
      if (!isWhole || reply.error) {
        // That somebody has removed what we were changing can be seen.
        if (fragment.type === "change" && !this.isKnown(fragment.uuid)) return;
        refused.push(reply?.error?.message ?? "The server's answer does not fit");
      } else {
        this.apply({ ...fragment, properties: { ...fragment.properties, ...reply.modifications } });
      }
    });
    this.sweep();
    this.onChange(refused);
  }
}

const ROOT = "root";

function emptySet() { return { adds: new Map(), removes: new Set(), changes: new Map() }; }

function isEmpty({ adds, removes, changes }) {
  return adds.size + removes.size + changes.size === 0;
}

/** What a base looks like with sets of changes on top. The base stays as it is. */
function fold(base, sets) {
  const properties = { ...base.properties };
  const models = new Map(base.models);
  let list = base.list;
  for (const { adds, removes, changes } of sets) {
    for (const [uuid, values] of adds) models.set(uuid, { ...models.get(uuid), ...values });
    for (const [uuid, values] of changes) {
      if (uuid === ROOT) Object.assign(properties, values);
      else if (models.has(uuid)) models.set(uuid, { ...models.get(uuid), ...values });
    }
    if (removes.size > 0) list = list.filter((uuid) => !removes.has(uuid));
    const added = [...adds.keys()].filter((uuid) => !list.includes(uuid));
    if (added.length > 0) list = [...list, ...added];
  }
  return { properties, models, list: list.filter((uuid) => models.has(uuid)) };
}
