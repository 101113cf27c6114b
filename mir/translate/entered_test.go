package translate

import (
	"errors"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/sir"
)

// TestCountedWhereEntered checks that a unit is counted at the address that each execution
// passes once. In Go the entry is executed again after the stack has grown.
func TestCountedWhereEntered(t *testing.T) {
	targets, _ := oneProcess(1)
	m := &targets.Processes[0].Modules[0]
	m.Bias = 0x1000
	entered, failure := uint64(0x18), error(nil)
	m.Entered = func(u sir.Unit) (uint64, error) {
		if u.Entry != 0x10 {
			t.Errorf("asked for a unit at %#x", u.Entry)
		}
		return entered, failure
	}
	r := &region{name: "work", copies: []unitCopy{{"p_1", m, &m.Program.Units[0]}}, entry: true, exit: true}
	places, err := r.places([]omis.Token{"p_1"}, true)
	if err != nil || len(places) != 2 || places[0].Addr != 0x1018 || places[0].Exit || places[1].Addr != 0x1020 {
		t.Errorf("%+v, %v", places, err)
	}
	failure = errors.New("its stack check is unknown")
	if _, err := r.places([]omis.Token{"p_1"}, false); err == nil || !strings.Contains(err.Error(), failure.Error()) {
		t.Errorf("a unit with an unknown beginning: %v", err)
	}
}
