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
  clock: string; // none: there are no times, an event takes one unit
  scheduling?: Scheduling;
  error?: string; // why it has no timeline
  images: { id: number; path: string; build_id: string }[] | null;
}

/** Scheduling says how it was learned when threads ran. */
export interface Scheduling {
  source: string; // "": it was not
  reason?: string;
  wake_ups: boolean; // what was ready after it was woken is told from what was blocked
  faults: boolean;
  states: boolean;
}

export interface Info {
  version: string;
  reels: ReelInfo[];
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
  arguments?: { name: string; type?: string; value: string }[];
}

export interface FunctionRow {
  func: number;
  name: string;
  module: string;
  calls: number;
  total_ns: number;
  self_ns: number;
  p50_ns: number | null; // null where no call was complete
  p99_ns: number | null;
  max_ns: number;
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
}

export interface Overview {
  busy: number[] | null;
  from_ns?: number; // where they begin
  gaps: [number, number][] | null;
}
