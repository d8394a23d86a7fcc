// Package storage keeps a symbol server's objects, in a folder or in a bucket of S3: each whole or not at all, and each written
// only if nobody else has written it meanwhile. Several servers may use one at once.
package storage
