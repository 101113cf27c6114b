package program

import "testing"

// TestNewest checks that Newest keeps the newest MostUnread records.
func TestNewest(t *testing.T) {
	for _, over := range []int{-MostUnread, -1, 0, 1, 1000} {
		records := make([]int32, MostUnread+over)
		for i := range records {
			records[i] = int32(i)
		}
		want := max(over, 0)
		kept, lost := Newest(records)
		if len(kept) != MostUnread+over-want || lost != uint64(want) || len(kept) > 0 && int(kept[0]) != want {
			t.Errorf("of %d records, %d are kept and %d are lost", MostUnread+over, len(kept), lost)
		}
	}
}
