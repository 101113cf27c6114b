package deliver

import (
	"testing"

	"mirador/mir"
)

func document(id string) *mir.Measurement { return &mir.Measurement{ProbeID: id} }

// read returns the ids of the documents that wait in a stream, and whether the stream is open.
func read(s Stream) (ids []string, open bool) {
	for {
		select {
		case m, more := <-s:
			if !more {
				return ids, false
			}
			ids = append(ids, m.ProbeID)
		default:
			return ids, true
		}
	}
}

func TestSendReachesEveryDestination(t *testing.T) {
	var o Outlet
	first, second := NewStream(), NewStream()
	if !o.Empty() || !o.Add(first) || !o.Add(second) || o.Empty() {
		t.Fatal("the destinations were not added")
	}
	o.Send(document("a"))
	o.Remove(first)
	o.Remove(first)
	o.Send(document("b"))
	if ids, open := read(first); len(ids) != 1 || ids[0] != "a" || open {
		t.Errorf("the removed stream has %q, open %t", ids, open)
	}
	if ids, open := read(second); len(ids) != 2 || !open {
		t.Errorf("the other stream has %q, open %t", ids, open)
	}
}

func TestSlowReaderLosesTheNewestDocuments(t *testing.T) {
	var o Outlet
	s := NewStream()
	o.Add(s)
	for range backlog {
		o.Send(document("old"))
	}
	o.Send(document("new"))
	ids, _ := read(s)
	if len(ids) != backlog || ids[backlog-1] != "old" {
		t.Errorf("%d documents, the last of them %q", len(ids), ids[len(ids)-1])
	}
}

func TestEndAndClose(t *testing.T) {
	var o Outlet
	first, second := NewStream(), NewStream()
	o.Add(first)
	o.End()
	if _, open := read(first); open {
		t.Error("End left a stream open")
	}
	if !o.Add(second) {
		t.Error("nothing can be added after End")
	}
	o.Close()
	o.Remove(second) // must not close it again
	if _, open := read(second); open {
		t.Error("Close left a stream open")
	}
	if o.Add(NewStream()) {
		t.Error("a stream was added after Close")
	}
}
