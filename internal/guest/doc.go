// Package guest runs tests on a machine of another processor, which it makes: Debian's arm64 kernel and userland in QEMU's emulation.
//
// [Prepare] fetches Debian's packages, whose signatures apt checks, and keeps what it makes of them. [Machine.Run] boots it with [Job]s,
// hands out what they say, and ends it. The guest has no network. What it does to its disks is forgotten, but for its folder of caches.
package guest
