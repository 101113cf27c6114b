package program

import "slices"

// A trace has a record for each occurrence, while a counter has one number for all. No
// thread waits for a reader: if a thread has no room for a record, it overwrites its
// oldest one.

// Record is one occurrence of an event.
type Record struct {
	TID     int    // 0 if the thread is not known
	Started uint64 // as in Row
	Alive   bool   // as in Row
	Time    int64  // time of the occurrence by the node's clock

	// Mark and Value come from the step that appended the record.
	Mark  int32
	Value int64
}

// MarkOfGoroutine returns the mark of the record in front of one of FromStack in a function of Go. Its value
// is the address of the goroutine's descriptor.
func MarkOfGoroutine(mark int32) int32 { return -mark }

// Trail is a Store of the kind StoreTraces.
type Trail interface {
	Store
	// Take returns the records appended since the last call, in order for each thread,
	// and the number of records lost meanwhile. It returns or counts as lost each record
	// exactly once. A record that a thread is still writing is returned by a later call,
	// possibly with the records behind it.
	Take() (records []Record, lost uint64, err error)
}

// MostUnread is the number of unread records kept of ended threads and of removed
// programs, because a reader may never come. Running threads keep their records in rings
// of limited size.
const MostUnread = 1 << 20

// Newest returns the newest MostUnread records of a list in the order of time, and the
// number of older ones, which are lost.
func Newest[R any](records []R) (kept []R, lost uint64) {
	over := max(len(records)-MostUnread, 0)
	return slices.Delete(records, 0, over), uint64(over)
}
