package fake

import (
	"mirador/omis/node"
	"mirador/omis/program"
)

var _ program.Trail = (*store)(nil)

// append adds a record to a thread's row. The caller holds Placer.mu.
func (s *store) append(r *storeRow, op program.Op, h *node.Hit) {
	r.Value++
	if int64(len(r.records)) == op.Room {
		r.records = r.records[1:]
		s.lost++
	}
	r.records = append(r.records, program.Record{TID: r.TID, Started: r.Row.Started, Time: h.Time, Mark: op.Mark, Value: op.Value})
}

// Take implements program.Trail.
func (s *store) Take() (list []program.Record, lost uint64, err error) {
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
	if s.placer.Unreadable != nil {
		if err := s.placer.Unreadable(s.proc, s.kind); err != nil {
			return nil, 0, err
		}
	}
	for _, r := range s.rows {
		for _, rec := range r.records {
			rec.Alive = s.placer.Started == nil || s.placer.Started(r.TID) == r.Row.Started
			list = append(list, rec)
		}
		r.records = nil
	}
	lost, s.lost = s.lost, 0
	return list, lost, nil
}
