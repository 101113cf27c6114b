package pa

import (
	"fmt"
	"testing"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// log is a Trail.
type log struct {
	manyStore
	records []service.Record
}

func (l *log) Take() (records []service.Record, lost uint64, err error) {
	records, l.records = l.records, nil
	return records, 0, nil
}

// TestUnreadTrace checks that an unread trace keeps the newest records of removed
// programs, and of threads that come and go, and reports how many were lost.
func TestUnreadTrace(t *testing.T) {
	const few = 3
	full := func() *trace {
		tr := newTrace(few)
		tr.taken = make([]service.Record, program.MostUnread)
		return tr
	}
	left := full()
	l := &log{records: []service.Record{{Record: program.Record{Time: 1}}, {Record: program.Record{Time: 2}}}}
	left.Join(l)
	if err := left.Leave(l); err != nil {
		t.Fatal(err)
	}
	added := full()
	const threads = 2*mostTails + 1
	for thread := range threads {
		who := omis.Token(fmt.Sprintf("t_%d", thread))
		for i := range few {
			added.add(owner{"p_1", "t_1"}, service.Record{Thread: who, Record: program.Record{Time: int64(thread*few + i + 1)}})
		}
	}
	if len(added.byThread) != 1 {
		t.Errorf("there are separate records for %d threads", len(added.byThread))
	}
	for what, c := range map[string]struct {
		*trace
		more, lost int
	}{"left": {left, 2, 2}, "added": {added, threads * few, (threads - 1) * few}} {
		list, lost, err := c.read(2 * program.MostUnread)
		if err != nil || lost != uint64(c.lost) || len(list) != program.MostUnread+c.more-c.lost || list[len(list)-1].Time != int64(c.more) {
			t.Errorf("%s: %d records, %d lost (%v)", what, len(list), lost, err)
		}
	}
}
