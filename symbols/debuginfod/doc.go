// Package debuginfod fetches debug information and executables by build ID from
// debuginfod servers, and keeps them.
package debuginfod
