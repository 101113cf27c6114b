//go:build linux && amd64

package inline

import "mirador/omis"

var _ omis.ManyReader = (*Placer)(nil)

// AppendRows: see omis.ManyReader. It is looked once who has come to a process, for all
// of its stores that follow each other.
func (*Placer) AppendRows(stores []omis.Store, rows []omis.Row, ends []int) ([]omis.Row, []int, error) {
	for from := 0; from < len(stores); {
		t := stores[from].(*store).target
		p := pace{clock: t.placer.clock}
		t.mu.Lock()
		t.meet()
		for ; from < len(stores) && stores[from].(*store).target == t; from++ {
			rows = stores[from].(*store).append(rows, &p)
			ends = append(ends, len(rows))
		}
		t.mu.Unlock()
	}
	return rows, ends, nil
}

// pace asks the clock once how long its ticks are, when it is needed first.
type pace struct {
	clock *clock
	known uint64
}

func (p *pace) tick() uint64 {
	if p.known == 0 {
		p.known = p.clock.tick()
	}
	return p.known
}
