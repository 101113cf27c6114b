//go:build linux && amd64

package kernel_test

import (
	"errors"
	"testing"

	"mirador/omis"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// newPlacer makes a placer for a test.
func newPlacer(t testing.TB) *kernel.Placer {
	p := kernel.New(registrarCommand())
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func newStore(t testing.TB, p *kernel.Placer, id omis.ProcID, kind program.StoreKind) program.Store {
	t.Helper()
	s, err := p.NewStore(id, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func place(t testing.TB, p *kernel.Placer, id omis.ProcID, addr uint64, steps ...program.Op) program.Placed {
	t.Helper()
	placed := placeAt(t, p, id, steps, addr)
	t.Cleanup(func() {
		if err := p.Remove(placed); err != nil {
			t.Error(err)
		}
	})
	placed[0].SetActive(true)
	return placed[0]
}

// placeAt places one program at several addresses.
func placeAt(t testing.TB, p *kernel.Placer, id omis.ProcID, steps program.Program, addrs ...uint64) []program.Placed {
	t.Helper()
	var list []program.Placing
	for _, addr := range addrs {
		list = append(list, program.Placing{Watch: node.Watch{Event: node.EventReachedAddr, Proc: id, Addr: addr}, Program: steps})
	}
	placed, errs := p.Place(list)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return placed
}

func rows(t testing.TB, s program.Store) []program.Row {
	t.Helper()
	list, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCountAndTime(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	sums, intervals := newStore(t, p, g.ID, program.StoreSums), newStore(t, p, g.ID, program.StoreIntervals)
	place(t, p, g.ID, g.Func["work"], program.Op{Do: program.OpAdd, Value: 3, Store: sums}, program.Op{Do: program.OpStart, Store: intervals})
	for _, exit := range g.Exits("work") {
		place(t, p, g.ID, exit, program.Op{Do: program.OpStop, Store: intervals})
	}
	g.Do("together 4 500")
	g.Do("call 7")
	all := rows(t, sums)
	if len(all) != 5 {
		t.Fatalf("%d rows: %+v", len(all), all)
	}
	for i, r := range all {
		want := int64(1500)
		if i == 4 {
			want = 21
		}
		if r.Value != want {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	for i, r := range rows(t, intervals) {
		want := int64(500)
		if i == 4 {
			want = 7
		}
		if r.Count != want || r.Open != 0 || r.Unfinished != 0 || r.Min == 0 || r.Max < r.Min || r.Last > r.Max || r.Sum.Lo < r.Min*uint64(want) || r.Squares.Lo < r.Min*r.Min {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}
