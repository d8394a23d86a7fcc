// Package overdue finds out what threads do whose innermost recorded call takes longer than its like, where what it calls isn't recorded.
package overdue
