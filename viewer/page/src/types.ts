// What the server answers. Times are nanoseconds from the start of the recording.

export interface ReelInfo {
  name: string;
  path: string;
  duration_ns: number;
  start_unix_ns: number;
  events: number;
  calls: number;
  dropped: number;
  closed: boolean;
  live: boolean;
  damaged: string[] | null;
  goroutines: boolean;
  functions: number;
  dump?: boolean;
  off?: boolean; // functions were off for what they cost
  budget?: Budget;
  clock: string; // none: there are no times, an event takes one unit
  scheduling?: Scheduling;
  error?: string; // why it has no timeline
  images: { id: number; path: string; build_id: string }[] | null;
}

/** Budget is what recording was allowed to cost, did cost, and how much is recorded for that. */
export interface Budget {
  wanted: number;
  measured?: number;
  calls_recorded_share?: number;
  time_recorded_share?: number;
}

/** Offs are functions whose calls were not recorded for some time. */
export interface Offs {
  functions: number; // how many
  longest: OffFunction[];
  times?: { from_ns: number; to_ns: number; estimated?: number }[]; // of one function
  more?: number;
}

/** OffFunction is one of them; when it is listed with its whole times, also how often it was off, and from when to when. */
export interface OffFunction {
  func: number;
  name: string;
  module: string;
  off_ns: number;
  off_share: number;
  estimated_calls?: number;
  times?: number;
  from_ns?: number;
  to_ns?: number;
}

/** OffRun is a stretch in which so many functions were off, ns. */
export type OffRun = [from: number, to: number, functions: number];

/** OffView says when functions were off. */
export interface OffView {
  most: number; // at once, at any time
  runs: OffRun[];
  whole: boolean; // nothing is merged
  // Of what is looked for:
  found?: number; // functions that were off at any time
  found_runs?: OffRun[];
  name?: string; // of the only one
}

/** Scheduling says how it was learned when threads ran. */
export interface Scheduling {
  source: string; // "": it was not
  reason?: string;
  wake_ups: boolean; // what was ready after it was woken is told from what was blocked
  faults: boolean;
  states: boolean;
  summing?: boolean; // they are still being summed up: views have none of some lanes
}

export interface Info {
  version: string;
  reels: ReelInfo[];
  why?: boolean; // the server can tell why a call was slow
  control?: boolean; // the recording can be paused from here
  build: { progress: number };
}

export interface Lane {
  id: number;
  tid: number;
  pid: number;
  goroutine: number;
  name: string;
  kind: string;
  calls: number;
  rows: number;
  start_ns: number;
  end_ns: number;
  dropped: number;
  states?: boolean; // when it ran is known
  // Of what the program said, see Marks:
  spans?: number; // rows of spans
  instants?: number; // how many there are
  track?: Track; // it is one, and no thread
}

/** Track is a counter, or asynchronous spans of a title. */
export interface Track {
  id: number; // among lanes
  kind: "async" | "counter" | "spans"; // spans: of a goroutine that has made no recorded call
  title: number;
  name: string;
  category?: string;
  pid?: number;
  rows: number;
  count: number;
  instants?: number;
  more?: number; // spans that are in the last row together
  min?: number;
  max?: number;
  last?: number;
}

/** Pause is a time in which nothing was recorded because somebody had asked for that. */
export interface Pause {
  from_ns: number;
  to_ns: number;
  by?: string;
  pid?: number; // that was paused; absent: all
  open?: boolean; // its end is not in the recording: it goes on, if that does
}

/** Marks says where the program said something. */
export interface Marks {
  state: "none" | "pending" | "ready";
  progress: number;
  lanes: [lane: number, rows: number, spans: number, instants: number][];
  tracks: Track[];
  pauses: Pause[];
  marks: number;
  flows: number;
  left?: number; // that aren't shown because there are too many
}

/** Flow is an arrow from what something left to where it arrived. */
export interface Flow {
  from_lane: number | null; // null: of a goroutine that isn't shown
  to_lane: number | null;
  from_ns: number;
  to_ns: number;
  title: number;
  id: string;
}

type Argument = { name: string; type?: string; value: string };

/** Mark is a span, an instant, or a counter's value. */
export interface Mark {
  kind: "span" | "async" | "instant" | "value";
  lane: number;
  row: number;
  title: number;
  name: string;
  category?: string;
  provider?: string;
  marker?: string;
  start_ns: number;
  duration_ns: number;
  unstarted?: boolean;
  unfinished?: boolean;
  count?: number; // several that there was no room to tell apart
  id?: string;
  value?: number;
  arguments?: Argument[];
  results?: Argument[];
  steps?: { at_ns: number; name: string; arguments?: Argument[] }[];
  among?: {
    count: number;
    complete: number;
    total_ns: number;
    p50_ns: number;
    p99_ns: number;
    min_ns: number;
    max_ns: number;
    shorter: number;
    buckets: Bucket[];
  };
  flows?: Flow[];
}

/** MarkTable is what marks come to in a range. */
export interface MarkTable {
  spans: { title: number; name: string; category?: string; async?: boolean; count: number; total_ns: number; p50_ns: number; p99_ns: number; max_ns: number }[];
  counters: { track: number; title: number; name: string; category?: string; values: number; min: number; mean: number; max: number; first: number; last: number }[];
  instants: { title: number; name: string; category?: string; count: number }[];
  titles: [number, number];
}

/** Trigger is what a dump was made for. */
export interface Trigger {
  kind: string;
  condition: string;
  detail?: string;
  name: string;
  tid: number;
  thread: string;
  start_ns: number;
  end_ns: number;
  duration_ns: number;
  open?: boolean; // its call had not returned
  lane: number | null;
  row: number | null; // null: its call isn't in the reel
}

/** Dump is the last moments before something happened. */
export interface Dump {
  from_ns: number;
  to_ns: number;
  triggers: Trigger[];
  more_triggers?: number;
  missing: { lane: number | null; from_ns: number; to_ns: number }[]; // lane null: all
}

export interface FunctionName {
  name: string;
  linkage_name?: string;
  module?: string;
  address?: string;
  file?: string;
  line?: number;
  name_from?: string; // who knew the name, if not the recorder
  pending?: boolean; // where it is in the source may be known later
}

export interface Caller {
  row: number;
  func: number;
  name: string;
  start_ns: number;
  duration_ns: number;
}

export interface Call {
  lane: number;
  row: number;
  func: number;
  name: string;
  module: string;
  start_ns: number;
  duration_ns: number;
  self_ns: number;
  depth: number;
  flags: string[] | null;
  callers?: Caller[] | null;
  callees?: number;
  states?: Split; // its time split, if that is known of its thread
  off?: Offs; // functions that were off while it ran
  arguments?: { name: string; type?: string; value: string }[];
}

/** By is what times are of: all, or those in which threads were in a state. */
export type By = "wall" | "cpu" | "ready" | "blocked";

/** Split is a time by what a thread did; what is missing to the whole isn't known. */
export interface Split {
  cpu_ns: number;
  ready_ns: number;
  blocked_ns: number;
}

/** State is a time in which a thread was in one state. */
export interface State {
  lane: number;
  state: "cpu" | "ready" | "blocked" | "unknown";
  from_ns: number;
  to_ns: number;
  cpu?: number;
  preempted?: boolean; // of ready: it was running before
  uninterruptible?: boolean; // of blocked: in state D
  waker?: { tid?: number; kernel?: boolean; name?: string; lane: number | null };
  wait?: { syscall: number; name?: string; kind?: string; object?: string; address?: string };
  ready_ns?: number; // of blocked: how long it then took until it ran
  in?: Caller; // the innermost call that was open
  holders?: Holder[]; // who was waited for, the last one first
}

/** Holder is what a thread did while it was waited for. */
export interface Holder {
  lane: number | null;
  tid: number;
  name?: string;
  from_ns: number;
  to_ns: number;
  function?: string; // that it was in for the most part
  held_ns: number; // and for how long
  in?: string; // the function below it in which nearly all of that went
}

/** Waits is what a call waited for. */
export interface Waits {
  waits: State[]; // the longest, in order of time
  long: number; // how many of 100 µs and more there are
  short: number;
  short_ns: number;
  self?: Split;
}

/** WhyLine is a line of the answer to why a call was slow, with the place that it is about. */
export interface WhyLine {
  text: string;
  kind: "head" | "cause" | "more" | "note";
  lane: number | null; // null: it is about no place
  from_ns: number;
  to_ns: number;
}

export interface Why {
  lines: WhyLine[] | null;
  peer?: Call | null; // the ordinary call that it was compared with
}

export interface FunctionRow {
  func: number;
  name: string;
  module: string;
  calls: number;
  total_ns: number;
  self_ns: number;
  // Where states are known:
  total_cpu_ns?: number;
  total_ready_ns?: number;
  total_blocked_ns?: number;
  self_cpu_ns?: number;
  self_ready_ns?: number;
  self_blocked_ns?: number;
  p50_ns: number | null; // null where no call was complete
  p99_ns: number | null;
  max_ns: number;
  // Where its calls were not recorded for some time:
  off_ns?: number;
  off_share?: number;
  estimated_calls?: number;
}

export interface TreeNode {
  func: number;
  name: string;
  parent: number;
  calls: number;
  total_ns: number;
  self_ns: number;
}

export interface Bucket {
  from_ns: number;
  to_ns: number;
  calls: number;
}

export interface Found {
  functions: { id: number; name: string; module: string; calls: number }[] | null;
  matches: number;
  calls: number;
  pending?: boolean; // calls are not counted yet
}

type Side = Omit<FunctionRow, "func" | "name" | "module">;

export interface DiffRow {
  name: string;
  module: string;
  a: Side | null;
  b: Side | null;
  slower_ns: number; // what its own code took in B beyond what as many calls took in A
  delta_total_ns: number;
  delta_self_ns: number;
  off_a?: boolean; // it was off for some time in A
  off_b?: boolean;
}

/** DiffOff says how many functions were off for some time in either reel, and by how much the time differs for which that is why. */
export interface DiffOff {
  functions_a: number;
  functions_b: number;
  off_ns: number;
}

export interface Overview {
  busy: number[] | null;
  from_ns?: number; // where they begin
  gaps: [number, number][] | null;
}
