// Package server is a symbol server: it hands out debug files by build ID as debuginfod does, names addresses with symbol
// maps that it makes when they are first needed, and takes symbols from who may push them.
//
// It keeps nothing that matters: all is in a storage, which several servers may use at once. Everything that comes by HTTP
// is hostile: it is bounded in size, time and memory, IDs are parsed before they become keys, and a file is parsed before it
// is stored.
package server
