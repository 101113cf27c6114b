package omis

import "slices"

// A trace has a record for each occurrence, where a counter has a number for all of them.
// Nobody waits for a reader: where a thread has no room for another record, the oldest
// one that it has goes.

// Record is one occurrence of an event.
type Record struct {
	TID     int    // 0: a thread that is not told apart
	Started uint64 // as Row has it
	Alive   bool   // as Row has it
	Time    int64  // when it happened, by the clock of the node

	// Those of the step that appended it.
	Mark  int32
	Value int64
}

// Trail is a Store of the kind StoreTraces.
type Trail interface {
	Store
	// Take hands out the records that were appended since the last time, those of each
	// thread in their order, and says how many were lost meanwhile: each one that was
	// appended is either handed out or lost, once. One that a thread is just about to
	// write is handed out later, and until then those behind it may be, too.
	Take() (records []Record, lost uint64, err error)
}

// MostUnread is how many records are kept of threads that have ended, and of programs that
// were taken away, for a reader who may never come; those of threads that run are in rings.
const MostUnread = 1 << 20

// Newest are the newest of some records, the oldest of which come first, and how many others
// are lost: there are more than MostUnread.
func Newest[R any](records []R) (kept []R, lost uint64) {
	over := max(len(records)-MostUnread, 0)
	return slices.Delete(records, 0, over), uint64(over)
}
