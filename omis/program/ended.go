package program

// A store must not lose the measurements of threads that have ended, but a process may
// create and end thousands of threads a minute. So a store keeps separate rows only for
// the threads that ended last. It folds the rows of earlier ones into a single row that
// names no thread: its TID is 0.

// Limits of RowsOfEnded, and of the number of such rows in all stores of a process.
const (
	mostEnded  = 1000
	leastEnded = 16
	allEnded   = 100 * mostEnded
)

// RowsOfEnded returns the number of ended threads that keep rows of their own in a store,
// if the process has this many stores. TooManyEnded allows a quarter more, so that a
// store does not have to fold rows each time a thread ends.
func RowsOfEnded(stores int) int {
	return min(max(allEnded/max(stores, 1), leastEnded), mostEnded)
}

// TooManyEnded reports whether a store must fold rows of ended threads until RowsOfEnded
// are left.
func TooManyEnded(rows, stores int) bool {
	n := RowsOfEnded(stores)
	return rows > n+n/4
}

// Join returns the sum of the measurements of two threads, as a row that names no thread. The
// thread of later ended later.
func (r Row) Join(later Row) Row {
	return Row{Value: r.Value + later.Value, Intervals: r.Intervals.Join(later.Intervals)}
}

// Join returns the sum of the intervals of two threads, with the Last of later unless later
// has no intervals.
func (i Intervals) Join(later Intervals) Intervals {
	i.Unfinished, i.Open, i.Skipped = i.Unfinished+later.Unfinished, i.Open+later.Open, i.Skipped+later.Skipped
	switch {
	case later.Count == 0:
		return i
	case i.Count == 0:
		i.Min = later.Min
	}
	i.Count, i.Last = i.Count+later.Count, later.Last
	i.Min, i.Max = min(i.Min, later.Min), max(i.Max, later.Max)
	i.Sum, i.Squares = i.Sum.Add(later.Sum), i.Squares.Add(later.Squares)
	return i
}
