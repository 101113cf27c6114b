package conform

import (
	"bytes"
	"reflect"
	"testing"

	"mirador/mir"
)

// TestGoroutines checks that the grammars allow goroutines in a snapshot only if the request asks
// for them, and that decoding the request and the snapshot restores what was encoded.
func TestGoroutines(t *testing.T) {
	snapshot := &mir.Snapshot{Entities: []mir.Entity{{
		Kind: mir.Process, ID: "p_1", Children: []mir.Entity{{Kind: mir.Thread, ID: "t_1"}},
		Goroutines: []mir.Goroutine{{ID: "1", State: "waiting", Reason: "chan receive", Stack: []string{"main.main"}}, {ID: "7", State: "running", Thread: "t_1"}},
	}}}
	var answer bytes.Buffer
	if err := mir.Encode(&answer, snapshot); err != nil {
		t.Fatal(err)
	}
	if err := Check(true, answer.Bytes()); err != nil {
		t.Error(err)
	}
	if Check(false, answer.Bytes()) == nil {
		t.Error("the report's DTD allows goroutines")
	}
	var request bytes.Buffer
	if err := mir.Encode(&request, &mir.SnapshotRequest{Stack: 3, Goroutines: true}); err != nil {
		t.Fatal(err)
	}
	asked, err := mir.Decode(request.Bytes(), mir.ReplyLimits())
	if r, ok := asked.(*mir.SnapshotRequest); err != nil || !ok || !r.Goroutines || r.Stack != 3 {
		t.Errorf("%+v (%v)", asked, err)
	}
	read, err := mir.Decode(answer.Bytes(), mir.ReplyLimits())
	if err != nil {
		t.Fatal(err)
	}
	got := read.(*mir.Snapshot).Entities[0].Goroutines
	if want := snapshot.Entities[0].Goroutines; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
