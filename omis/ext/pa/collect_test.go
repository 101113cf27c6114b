package pa

import (
	"fmt"
	"testing"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// manyStore is a store that calls during while many stores are read together.
type manyStore struct {
	rows   []service.Row
	during func()
}

func (s *manyStore) Rows() ([]service.Row, error) { return s.rows, nil }
func (s *manyStore) Reset() error                 { s.rows = nil; return nil }

func (s *manyStore) ReadMany(list []service.Store, each func(int, []service.Row, error)) {
	var read [][]service.Row
	for _, other := range list {
		read = append(read, other.(*manyStore).rows)
	}
	s.during()
	for i, rows := range read {
		each(i, rows, nil)
	}
}

// TestChangesMeanwhile checks that an object that changes while many are read is read
// again, so that no change appears twice or not at all.
func TestChangesMeanwhile(t *testing.T) {
	row := func(thread omis.Token, n int64) service.Row {
		return service.Row{Proc: "p_1", Thread: thread, Row: program.Row{Value: n}}
	}
	c := []*counter{newCounter(), newCounter(), newCounter(), newCounter(), newCounter()}
	stores := make([]*manyStore, len(c))
	for i := range c {
		stores[i] = &manyStore{rows: []service.Row{row("t_1", 1)}}
		c[i].Join(stores[i])
	}
	stores[0].during = func() {
		c[1].add(owner{"p_1", "t_1"}, 10)
		if err := c[2].Leave(stores[2]); err != nil {
			t.Error(err)
		}
		stores[2].rows = nil
		c[3].Join(&manyStore{rows: []service.Row{row("t_2", 1)}})
		if err := c[4].reset(); err != nil {
			t.Error(err)
		}
	}
	var objects []any
	for _, one := range c {
		objects = append(objects, one)
	}
	var got []string
	collect(nil, len(objects), func(i int) any { return objects[i] }, func(n int, values []omis.Value, err error) {
		for range n {
			got = append(got, fmt.Sprint(texts(values), err))
		}
	})
	for i, want := range []string{"1 [p_1 t_1 1]", "1 [p_1 t_1 11]", "1 [p_1 t_1 1]", "2 [p_1 t_1 1 p_1 t_2 1]", "0 []"} {
		if want = "[" + want + "] <nil>"; got[i] != want {
			t.Errorf("counter %d: %s, want %s", i+1, got[i], want)
		}
	}
	if len(got) != len(c) {
		t.Errorf("%d answers", len(got))
	}
}

// texts returns the values as text.
func texts(values []omis.Value) []any {
	var list []any
	for _, v := range values {
		switch v.Kind {
		case omis.KindList:
			list = append(list, texts(v.List))
		case omis.KindToken:
			list = append(list, v.Str)
		default:
			n, _ := v.Int64()
			list = append(list, n)
		}
	}
	return list
}
