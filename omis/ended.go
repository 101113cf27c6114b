package omis

// What threads have measured that have ended must not be forgotten, but a process may
// begin and end thousands of them a minute. So a store keeps rows of their own for those
// that ended last; what all before them have measured is added up in one row that names
// no thread: its TID is 0.

// Limits of RowsOfEnded, and how many rows the stores of a process have together.
const (
	mostEnded  = 1000
	leastEnded = 16
	allEnded   = 100 * mostEnded
)

// RowsOfEnded is how many threads that have ended keep rows of their own in a store, where
// a process has so many stores. A quarter more may have, so that not each thread that ends
// has another one's row added up.
func RowsOfEnded(stores int) int {
	return min(max(allEnded/max(stores, 1), leastEnded), mostEnded)
}

// TooManyEnded tells that rows of ended threads are to be added up until RowsOfEnded are
// left.
func TooManyEnded(rows, stores int) bool {
	n := RowsOfEnded(stores)
	return rows > n+n/4
}

// Join is what two threads have measured together, the later one of which is the other. It
// names nobody.
func (r Row) Join(later Row) Row {
	return Row{Value: r.Value + later.Value, Intervals: r.Intervals.Join(later.Intervals)}
}

// Join sums up intervals of two threads; the last one is the other's, if it has measured
// any.
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
