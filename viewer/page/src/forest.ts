// The call tree as api/tree gives it, laid out for the flame graph and the tree.

import type { TreeNode } from "./types";

export interface Branch {
  func: number;
  name: string;
  calls: number;
  total: number; // ns
  self: number;
  parent: Branch | null;
  children: Branch[];
  depth: number; // 0: the root that stands for everything
  from: number; // ns from the left in a left-heavy order
}

// What is deeper than this is not laid out: a recursion may be a hundred thousand deep.
const deepest = 4000;

/** grow makes the tree of the nodes; nodes whose parent makes no sense are left out. */
export function grow(nodes: TreeNode[]): Branch {
  const root: Branch = { func: 0, name: "all calls", calls: 0, total: 0, self: 0, parent: null, children: [], depth: 0, from: 0 };
  const made: (Branch | undefined)[] = [];
  nodes.forEach((n, i) => {
    const parent = n.parent < 0 ? root : n.parent < i ? made[n.parent] : undefined;
    if (!parent || parent.depth >= deepest) return;
    const b: Branch = {
      func: n.func,
      name: n.name,
      calls: n.calls,
      total: n.total_ns,
      self: n.self_ns,
      parent,
      children: [],
      depth: parent.depth + 1,
      from: 0,
    };
    parent.children.push(b);
    made[i] = b;
  });
  root.total = root.children.reduce((t, c) => t + c.total, 0);
  root.calls = root.children.reduce((t, c) => t + c.calls, 0);
  place(root);
  return root;
}

function place(root: Branch) {
  const todo = [root];
  for (let b = todo.pop(); b; b = todo.pop()) {
    b.children.sort((x, y) => Number(x.func === 0) - Number(y.func === 0) || y.total - x.total);
    let from = b.from;
    for (const c of b.children) {
      c.from = from;
      from += c.total;
      todo.push(c);
    }
  }
}

/** levels are the branches by depth, each level from left to right. */
export function levels(root: Branch): Branch[][] {
  const out: Branch[][] = [];
  let level = [root];
  while (level.length > 0) {
    out.push(level);
    level = level.flatMap((b) => b.children);
  }
  return out;
}

/** path is from the root to the branch. */
export function path(b: Branch): Branch[] {
  const out: Branch[] = [];
  for (let p: Branch | null = b; p; p = p.parent) out.unshift(p);
  return out;
}
