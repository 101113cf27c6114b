//go:build linux && amd64

package kernel_test

import (
	"errors"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// TestNopsInside: if the kernel overwrites the red zone when a thread hits a uprobe at a nop of five
// bytes, such uprobes are set only if the nop is the first instruction of a function.
func TestNopsInside(t *testing.T) {
	g := rig.Start(t, subject.Compile(t, "shared", "../testdata/shared.c", "../testdata/shared.s"))
	const nop = 5 // length of the instruction before the nop of inner5
	for name, c := range map[string]struct {
		addr  uint64
		spoil error
		want  string // in the refusal
	}{
		"inside, spoilt":           {g.Func["inner5"] + nop, errors.New("spoilt"), "spoilt"},
		"inside, not spoilt":       {g.Func["inner5"] + nop, nil, ""},
		"first instruction":        {g.Func["nop5"], errors.New("spoilt"), ""},
		"another of five bytes":    {g.Func["red5"], errors.New("spoilt"), ""},
		"another behind something": {g.Func["push1"] + 1, errors.New("spoilt"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlacer(t)
			p.SetNops(func() error { return c.spoil })
			err := judge(p, node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: c.addr})
			var refusal *program.Refusal
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refusal) || !strings.Contains(refusal.Why, c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestSharedUprobe: the kernel serves a uprobe of another tool and ours at one address.
func TestSharedUprobe(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	other := newPlacer(t)
	addr := g.Func["work"]
	theirs, ours := newStore(t, other, g.ID, program.StoreSums), newStore(t, p, g.ID, program.StoreSums)
	place(t, other, g.ID, addr, program.Op{Do: program.OpAdd, Value: 1, Store: theirs})
	v := place(t, p, g.ID, addr, program.Op{Do: program.OpAdd, Value: 1, Store: ours}).Verdict()
	if v.Name != kernel.Name || !strings.Contains(v.Why, "another tool's uprobe") {
		t.Errorf("%+v", v)
	}
	g.Do("call 10")
	for _, s := range []program.Store{theirs, ours} {
		if list := rows(t, s); len(list) != 1 || list[0].Value != 10 {
			t.Errorf("rows %+v", list)
		}
	}
}
