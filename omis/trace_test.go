package omis

import "testing"

// As many records are kept as may be, the newest.
func TestNewest(t *testing.T) {
	for _, over := range []int{-MostUnread, -1, 0, 1, 1000} {
		records := make([]int32, MostUnread+over)
		for i := range records {
			records[i] = int32(i)
		}
		want := max(over, 0)
		kept, lost := Newest(records)
		if len(kept) != MostUnread+over-want || lost != uint64(want) || len(kept) > 0 && int(kept[0]) != want {
			t.Errorf("of %d there are %d kept and %d lost", MostUnread+over, len(kept), lost)
		}
	}
}
