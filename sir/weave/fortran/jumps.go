package fortran

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"mirador/sir"
	"mirador/sir/source/fortran"
	"mirador/sir/weave/woven"
)

// piece weaves regions into a source in Fortran.
type piece struct {
	*Source
	spans    []*span
	inside   []int // of each statement: the innermost span around it, -1: none
	inserted []insertion
	replaced []replacement
	opened   map[int]bool // statements of which IF (…) becomes IF (…) THEN
	free     []int        // of each unit: the next label to use
	wrong    map[*woven.Region]error
}

// Weave returns the text with regions woven in.
func (f *Source) Weave(regions []*woven.Region) ([]byte, error) {
	p := &piece{Source: f, opened: map[int]bool{}, free: make([]int, len(f.units)), wrong: map[*woven.Region]error{}}
	for _, l := range regions {
		at, err := f.place(l)
		if err == nil {
			err = f.allowed(at)
		}
		if err == nil && at.shape == unit {
			err = f.unitEnds(at)
		}
		if err != nil {
			p.wrong[l] = err
			continue
		}
		p.spans = append(p.spans, at)
	}
	p.nest()
	for _, at := range p.spans {
		if err := p.surround(at); err != nil {
			p.wrong[at.Region] = err
		}
	}
	units := map[int]bool{} // with regions
	for _, at := range p.spans {
		units[f.unitOf[at.first]] = true
	}
	for i := range f.statements {
		p.jumps(i, units[f.unitOf[i]])
	}
	for u := range units {
		p.add(f.front(f.unitEnd(u)), last, 1, "call "+noTail)
	}
	var errs []error
	for _, l := range regions {
		if why := p.wrong[l]; why != nil {
			errs = append(errs, &woven.Refusal{ID: l.ID, Why: why.Error()})
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return f.written(p.inserted, p.replaced), nil
}

// nest finds the innermost region around each statement.
func (p *piece) nest() {
	slices.SortFunc(p.spans, func(a, b *span) int { return a.Depth - b.Depth })
	slices.SortStableFunc(p.spans, func(a, b *span) int {
		if a.first != b.first {
			return a.first - b.first
		}
		return b.last - a.last
	})
	p.inside = make([]int, len(p.statements))
	var open []int
	next := 0
	for i := range p.inside {
		for len(open) > 0 && p.spans[open[len(open)-1]].last < i {
			open = open[:len(open)-1]
		}
		for ; next < len(p.spans) && p.spans[next].first <= i; next++ {
			if at := p.spans[next]; at.last >= i {
				open = append(open, next)
				if n := len(open); n > 1 {
					at.outer = p.spans[open[n-2]]
				}
			}
		}
		p.inside[i] = -1
		if n := len(open); n > 0 {
			p.inside[i] = open[n-1]
		}
	}
}

// around returns the regions around a statement, inner ones first.
func (p *piece) around(i int) (list []*span) {
	if p.inside[i] < 0 {
		return nil
	}
	for at := p.spans[p.inside[i]]; at != nil; at = at.outer {
		list = append(list, at)
	}
	return list
}

func (p *piece) add(at place, phase phase, order int, text string) {
	p.inserted = append(p.inserted, insertion{at, phase, order, text})
}

func (p *piece) begin(at *span) string {
	return "call " + woven.MarkerName(woven.Begins, p.program.ID, at.ID)
}
func (p *piece) end(at *span) string {
	return "call " + woven.MarkerName(woven.Ends, p.program.ID, at.ID)
}

// noTail is a procedure that does nothing. Units with regions call it last: a compiler may jump to what they call last,
// and the stack pointer would not be the same as where the region begins.
const noTail = "miradorz"

// surround begins and ends a region.
func (p *piece) surround(at *span) error {
	begin, end := place{}, place{}
	phase := ending
	switch at.shape {
	case unit:
		var err error
		if begin, err = p.firstPlace(p.unitOf[at.first]); err != nil {
			return err
		}
		end, phase = p.front(at.last), last
	case whole:
		begin, end = p.front(at.first), p.behind(at.last)
	case action:
		p.open(at.first)
		begin, end = place{p.statements[at.first].Action, behindIf}, p.behind(at.first)
	case part:
		begin, end = p.behind(at.first-1), p.behind(max(at.last, at.first-1))
		if at.last < at.first {
			phase = starting
		}
	}
	p.add(begin, starting, 2*at.Depth, p.begin(at))
	switch {
	case p.jumpsAway(at): // it ends before the jump
	case phase == starting:
		p.add(end, phase, 2*at.Depth, p.end(at))
	default:
		p.add(end, phase, -2*at.Depth, p.end(at))
	}
	return nil
}

// jumpsAway reports whether a region is a statement that does nothing but jump.
func (p *piece) jumpsAway(at *span) bool {
	jumps := p.statements[at.first].Jumps
	return len(jumps) > 0 && jumps[0].Alone && (at.shape == action || at.Kind == sir.Return || at.Kind == sir.Stop)
}

// open makes IF (…) action a construct.
func (p *piece) open(i int) {
	if p.opened[i] {
		return
	}
	p.opened[i] = true
	p.add(place{p.statements[i].Action, behindIf}, landing, 0, "")
	depth := 0
	if l := p.ifs[i]; l != nil {
		depth = l.Depth
	}
	p.add(p.behind(i), ending, -2*depth-1, "end if")
}

// jumps ends regions before a statement leaves them.
func (p *piece) jumps(i int, inWoven bool) {
	s := &p.statements[i]
	if len(s.Jumps) == 0 {
		return
	}
	around := p.around(i)
	alone := place{}
	if s.Action > 0 {
		alone = place{s.Action, behindIf}
	} else if s.Jumps[0].Alone {
		alone = p.front(i)
	}
	var landings []string
	for _, j := range s.Jumps {
		p.entered(i, j)
		left := p.left(i, j, around)
		tail := j.Kind == fortran.Returns && inWoven
		if len(left) == 0 && !tail {
			continue
		}
		if p.ends[i] {
			for _, at := range left {
				p.wrong[at.Region] = fmt.Errorf("the statement that ends a loop, at line %d, jumps out of it: end the loop with CONTINUE", p.lines.Of(s.Start))
			}
			continue
		}
		if s.Action > 0 {
			p.open(i)
		}
		if !j.Alone {
			landings = append(landings, p.land(i, j, left)...)
			continue
		}
		for n, at := range left {
			p.add(alone, leaving, n, p.end(at))
		}
		if tail {
			p.add(alone, leaving, len(left), "call "+noTail)
		}
	}
	if len(landings) == 0 {
		return
	}
	behind := p.behind(i)
	skip := p.label(i)
	p.add(behind, landing, 0, "goto "+skip)
	for _, text := range landings {
		p.add(behind, landing, 1, text)
	}
	p.add(behind, landing, 2, skip+" continue")
}

// land makes a statement jump to a label of its own, where regions end before the jump goes on.
func (p *piece) land(i int, j fortran.Jump, left []*span) (lines []string) {
	label := p.label(i)
	p.replaced = append(p.replaced, replacement{j.Start, j.End, label, j.End == p.statements[i].End})
	for n, at := range left {
		text := p.end(at)
		if n == 0 {
			text = label + " " + text
		}
		lines = append(lines, text)
	}
	return append(lines, "goto "+j.To)
}

// label returns a label that the unit of a statement does not have.
func (p *piece) label(i int) string {
	u := p.unitOf[i]
	if p.free[u] == 0 {
		p.free[u] = 99_999
	}
	for p.labels[u][strconv.Itoa(p.free[u])] != nil {
		p.free[u]--
	}
	p.free[u]--
	return strconv.Itoa(p.free[u] + 1)
}

// left returns the regions around a statement that a jump leaves, inner ones first.
func (p *piece) left(i int, j fortran.Jump, around []*span) (list []*span) {
	if len(around) == 0 {
		return nil
	}
	line := p.lines.Of(p.statements[i].Start)
	outer := p.target(i, j)
	for _, at := range around {
		switch j.Kind {
		case fortran.Returns, fortran.Stops:
			list = append(list, at)
		case fortran.Anywhere:
			if at.shape != unit {
				p.wrong[at.Region] = fmt.Errorf("it jumps to a label in a variable, at line %d", line)
			}
		case fortran.Exits, fortran.Cycles:
			if outer == nil && at.shape != unit {
				p.wrong[at.Region] = fmt.Errorf("the construct that is left at line %d was not found", line)
			} else if outer != nil && at.first > outer.first {
				list = append(list, at)
			}
		default:
			stays, err := p.keeps(at, p.labels[p.unitOf[i]][j.To])
			if err != nil {
				p.wrong[at.Region] = fmt.Errorf("%w: label %s, at line %d", err, j.To, line)
			} else if !stays {
				list = append(list, at)
			}
		}
	}
	return list
}

// target returns the construct that EXIT or CYCLE names.
func (p *piece) target(i int, j fortran.Jump) *span {
	if j.Kind != fortran.Exits && j.Kind != fortran.Cycles || p.statements[i].Skipped {
		return nil
	}
	for c := p.within[i]; c >= 0; c = p.within[p.constructs[c].first] {
		if at := p.constructs[c]; j.To == "" && at.Kind == sir.Loop || j.To != "" && at.construct == j.To {
			return at
		}
	}
	return nil
}

// keeps reports whether a jump to a label stays in a region: some statements have the label.
func (p *piece) keeps(at *span, labelled []int) (bool, error) {
	if len(labelled) == 0 {
		return false, errors.New("it jumps to a label that was not found")
	}
	stays := at.contains(labelled[0])
	for _, t := range labelled {
		if at.contains(t) != stays {
			return false, errors.New("it jumps to a label in two branches of the preprocessor")
		}
	}
	return stays, nil
}

// contains reports whether a region goes on when control reaches a statement. Where a statement begins a region, it begins
// anew.
func (at *span) contains(i int) bool {
	switch at.shape {
	case unit:
		return true
	case part:
		return at.first <= i && i <= at.last
	case whole:
		return at.first < i && i <= at.last
	}
	return false
}

// entered refuses regions that a jump leads into.
func (p *piece) entered(i int, j fortran.Jump) {
	u := p.unitOf[i]
	if j.Kind != fortran.ToLabel || u < 0 {
		return
	}
	for _, t := range p.labels[u][j.To] {
		for _, at := range p.around(t) {
			if at.contains(t) && (i < at.first || i > at.last) {
				p.wrong[at.Region] = fmt.Errorf("a jump leads into it, at line %d", p.lines.Of(p.statements[i].Start))
			}
		}
	}
}
