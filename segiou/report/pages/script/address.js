// The state of the table of images, as it stands in the address: which pixels are asked for, which
// images, and which image is shown. `#t=fence&p=building&image=0001` can be sent on.

const address = {
  keys: ["t", "p", "c", "slice", "beside", "from", "to", "image"],

  // Null where the address is about something else, such as a section.
  read() {
    const text = location.hash.slice(1);
    if (text === "" || text === "images") return {};
    const given = new URLSearchParams(text);
    const state = {};
    for (const key of this.keys) if (given.has(key)) state[key] = given.get(key);
    return Object.keys(state).length ? state : null;
  },

  of(state) {
    const given = this.keys.filter((key) => state[key] !== undefined && state[key] !== null);
    if (!given.length) return "#images";
    return `#${new URLSearchParams(given.map((key) => [key, state[key]]))}`;
  },
};

const NO_CLASS = "no class";

// The index of a class by its name; of "no class" it is the one after the last.
function classAt(name) {
  const index = data.names.indexOf(name);
  return index < 0 && name === NO_CLASS ? data.names.length : index;
}

const className = (index) => data.names[index] ?? NO_CLASS;

// As it is called in a sentence.
const called = (name) => isolated(name.replace(/^\d+$/, "class $&"));
const classCalled = (index) => called(className(index));

// What an address names that this page does not have; empty if it has everything.
function unknownIn(state) {
  const classes = ["t", "p", "c"].filter((key) => key in state && classAt(state[key]) < 0);
  const slices = ["slice", "beside"].filter((key) => key in state && !Object.hasOwn(data.slices, state[key]));
  const ids = state.image !== undefined && !images.ids.includes(state.image) ? ["image"] : [];
  const named = [[classes, "class"], [slices, "slice"], [ids, imageNoun]];
  const missing = named.flatMap(([keys, kind]) => keys.map((key) => `${kind} “${state[key]}”`));
  return missing.length ? `The address names ${missing.join(" and ")}, which this page does not have.` : "";
}

// A question about pixels with truth t and prediction p: one pair of classes, all errors of a truth
// or of a prediction, one class, or everything that is wrong.
function questionOf(state) {
  const [t, p, c] = ["t", "p", "c"].map((key) => (key in state ? classAt(state[key]) : null));
  const slices = [state.slice, state.beside].filter((name) => name !== undefined);
  if ([t, p, c].includes(-1) || !slices.every((name) => Object.hasOwn(data.slices, name))) return null;
  const about = c ?? t ?? p;
  const question = { t, p, c, about: about === data.names.length ? null : about };
  if (c !== null) {
    question.holds = (truth, pred) => (truth === c) !== (pred === c);
    question.text = `${classCalled(c)}: missed and false positives`;
    question.pixels = `Wrong ${data.unit} of ${classCalled(c)}`;
  } else if (t !== null && p !== null) {
    question.holds = (truth, pred) => truth === t && pred === p;
    question.text = t === p ? `${classCalled(t)}: correct` : `${classCalled(t)} predicted as ${classCalled(p)}`;
    question.pixels = `${classCalled(t)} ${data.unit} labelled ${classCalled(p)}`;
  } else if (t !== null) {
    question.holds = (truth, pred) => truth === t && pred !== t;
    question.text = `${classCalled(t)} predicted as another class`;
    question.pixels = `${classCalled(t)} ${data.unit} labelled as another class`;
  } else if (p !== null) {
    question.holds = (truth, pred) => pred === p && truth !== p;
    question.text = `other classes predicted as ${classCalled(p)}`;
    question.pixels = `Other ${data.unit} labelled ${classCalled(p)}`;
  } else {
    question.holds = (truth, pred) => truth !== pred;
    question.text = "";
    question.pixels = `Wrong ${data.unit}`;
  }
  return question;
}
