// Bench measures what callreel promises about speed, beside its peers and the
// limit, in one run on one machine, and prints one table.
//
// Costs of calls are thread CPU time inside the target, medians over rounds in
// which every contender has its turn, so that a busy machine hurts all alike.
// Nothing fails on a figure: the table states what is to be reached beside
// what was measured. A part that cannot be measured here says why.
package main
