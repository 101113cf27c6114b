//go:build linux && amd64

package linux

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/patch"
	"mirador/omis/linux/unwind"
)

// image is what must be known of a process to put code into it, as of one moment.
type image struct {
	node      *Node
	pid       int
	layout    *unwind.Layout
	mapped    proc.Mappings
	surveyors map[uint64]*patch.Surveyor // by the address at which the code is mapped
	former    map[uint64]*patch.Surveyor // those of an earlier moment: they have decoded functions
}

// spare has the surveyors that Survey leaves to Patch, because places are judged before code is put there. A
// surveyor belongs to one call at a time.
type spare struct {
	mu        sync.Mutex
	surveyors map[uint64]*patch.Surveyor
	forget    *time.Timer
}

// spareTime is how long surveyors are kept for Patch. What they have decoded takes memory.
const spareTime = 5 * time.Second

func (s *spare) take() map[uint64]*patch.Surveyor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forget != nil {
		s.forget.Stop()
	}
	list := s.surveyors
	s.surveyors = nil
	return list
}

func (s *spare) leave(list map[uint64]*patch.Surveyor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forget != nil {
		s.forget.Stop()
	}
	s.surveyors, s.forget = list, time.AfterFunc(spareTime, func() { s.take() })
}

var _ patch.Program = (*image)(nil)

func (gs *grounds) image(p omis.ProcID) (*image, error) {
	mapped, err := proc.Maps(p.PID)
	if err != nil {
		return nil, err
	}
	layout, err := gs.n.images.Layout(p.PID)
	if err != nil {
		return nil, err
	}
	return &image{node: gs.n, pid: p.PID, layout: layout, mapped: mapped, surveyors: make(map[uint64]*patch.Surveyor)}, nil
}

// Surveyor: see patch.Program.
func (p *image) Surveyor(addr uint64) (*patch.Surveyor, error) {
	m, ok := p.mapped.At(addr)
	switch {
	case !ok || !m.Exec:
		return nil, errors.New("the process has no code there")
	case m.Inode == 0:
		return nil, errors.New("the code there is of no file")
	case !m.Private:
		return nil, errors.New("the code there is shared with other processes")
	}
	s := p.surveyors[m.Start]
	if s == nil {
		module, err := p.node.codes.Of(p.pid, m)
		if err != nil {
			return nil, err
		}
		if s = p.former[m.Start]; s == nil || s.Module != module {
			s = &patch.Surveyor{Module: module, Base: m.Start, Sharing: p.node.sharing}
		}
		s.Bounds = p.layout.Bounds
		p.surveyors[m.Start] = s
	}
	return s, nil
}

// Vacancies: see patch.Program.
func (p *image) Vacancies(near, size uint64, taken []patch.Range) []uint64 {
	mapped := slices.Clone(p.mapped)
	for _, r := range taken {
		mapped = append(mapped, proc.Mapping{Start: r.Begin, End: r.End})
	}
	slices.SortFunc(mapped, func(a, b proc.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	return vacancies(mapped, near, size)
}
