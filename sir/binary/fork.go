package binary

import (
	"cmp"
	"path"
	"sort"
	"strings"

	"mirador/sir"
)

// area is a part of a source file: from a position to that of its last byte.
type area struct{ line, column, endLine, endColumn int }

// areaOf returns where a region is. An ELSE IF of Fortran begins a branch with its own condition, which is left out here.
func areaOf(r *sir.Region) area {
	a := area{r.Line, r.Code.Column, r.Code.EndLine, r.Code.EndColumn}
	if r.Form == "else if" && strings.HasPrefix(strings.ToLower(path.Ext(r.File)), ".f") {
		a.line, a.column = a.line+1, 1
	}
	return a
}

// holds reports whether a position is in the area. A position without a column is, if its line has no other text.
func (a area) holds(p position) bool {
	if p.column == 0 {
		return a.line < p.line && p.line < a.endLine
	}
	return a.begins(p) && cmp.Or(cmp.Compare(p.line, a.endLine), cmp.Compare(p.column, a.endColumn)) <= 0
}

// begins reports whether the area begins at a position or before it.
func (a area) begins(p position) bool {
	return cmp.Or(cmp.Compare(p.line, a.line), cmp.Compare(p.column, a.column)) >= 0
}

// hold reports whether a position is in one of some areas, which are in the order of the source and do not overlap.
func hold(areas []area, p position) bool {
	after := sort.Search(len(areas), func(i int) bool { return !areas[i].begins(p) })
	return after > 0 && areas[after-1].holds(p)
}

// fork is an if or a switch of a source file. One of its branches is measured. A statement or a block is measured alone.
type fork struct {
	alone    bool
	word     bool   // it begins with a word that has code
	file     string // in line tables
	whole    area
	branch   area
	branches []area // all of them
	above    []area // the branches from whose ends control goes on to this one
	others   []area // the other branches with code of their own that the same tests decide about
	nested   []area // the branches inside the branch
	head     int    // the line before the branch with its condition, if it is one of Fortran
}

// newFork describes a region of a source that has branches, and one of them.
func newFork(choice, branch *sir.Region) *fork {
	if choice == nil {
		f := &fork{alone: true, word: branch.Kind != sir.Scope && branch.Kind != sir.Branch, whole: areaOf(branch), branch: areaOf(branch)}
		f.add(branch)
		return f
	}
	f := &fork{whole: areaOf(choice), branch: areaOf(branch)}
	if f.branch.line > branch.Line {
		f.head = branch.Line
	}
	for i := range choice.Regions {
		r := &choice.Regions[i]
		switch {
		case r.Kind != sir.Branch:
			continue
		case r.Line == branch.Line && r.Code.Column == branch.Code.Column:
			f.add(r)
			f.branches = append(f.branches, areaOf(r))
			continue
		case !areaOf(r).begins(position{line: branch.Line, column: branch.Code.Column}):
		case r.Code.Falls:
			f.above = append(f.above, areaOf(r))
		default:
			f.above = nil
		}
		f.branches = append(f.branches, areaOf(r))
		if !r.Code.Empty && (choice.Kind == sir.Switch || !f.branch.begins(position{line: r.Line, column: r.Code.Column})) {
			f.others = append(f.others, areaOf(r))
		}
	}
	return f
}

// add notes the branches inside a region.
func (f *fork) add(region *sir.Region) {
	for i := range region.Regions {
		r := &region.Regions[i]
		switch {
		case r.Code == nil: // a unit
		case r.Kind == sir.Branch && region.Kind != sir.Try:
			f.nested = append(f.nested, areaOf(r))
		default:
			f.add(r)
		}
	}
}

// what is the word for what is measured.
func (f *fork) what() string {
	if f.alone {
		return "statement"
	}
	return "branch"
}

// tests reports whether a position is in a condition that decides whether the branch is executed.
func (f *fork) tests(p position) bool {
	return f.whole.holds(p) && !f.branch.begins(p) && !hold(f.branches, p)
}
