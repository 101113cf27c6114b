// Package fortran weaves regions into sources in Fortran, in free and fixed form: a region begins and ends in calls of
// procedures that a file in assembly language beside the source contains.
package fortran

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mirador/sir"
	"mirador/sir/source/fortran"
	"mirador/sir/weave/woven"
)

// Source is a source in Fortran.
type Source struct {
	*woven.Source
	program    *woven.Program
	lines      woven.Lines
	fixed      bool
	statements []fortran.Statement
	constructs []*span // by their first statement
	within     []int   // of each statement: the innermost construct around it, -1: none
	units      []*span
	unitOf     []int                 // of each statement: the innermost unit, -1: none
	ends       map[int]bool          // labelled statements that end loops
	labels     []labelsOfUnit        // by unit
	ifs        map[int]*woven.Region // that have an action
	declaring  map[*woven.Region]int // units that have to declare what they call: the line that says so
}

// mostStatements limits the statements of a source, because they take more memory than the source.
const mostStatements = 500_000

// labelsOfUnit has the statements with each label.
type labelsOfUnit map[string][]int

// span is a range of statements: from the first to the last one.
type span struct {
	*woven.Region
	first, last int
	construct   string
	shape       shape
	outer       *span // of those that are woven
}

// shape is how a region lies among statements.
type shape int

const (
	whole  shape = iota // statements
	part                // all statements inside a construct, or a branch of it
	action              // the statement behind IF (…)
	unit                // of the program
)

// Read reads a source of a program.
func Read(p *woven.Program, source int) *Source {
	s := &p.Sources[source]
	fixed := fortran.Fixed(s.Path)
	f := &Source{Source: s, program: p, lines: woven.LinesOf(s.Text), fixed: fixed, statements: fortran.Statements(s.Text, fixed, mostStatements), ends: map[int]bool{}, ifs: map[int]*woven.Region{}, declaring: map[*woven.Region]int{}}
	for _, l := range p.Regions[source] {
		switch l.Kind {
		case sir.Module:
			f.findDeclaring(l)
		case sir.Loop, sir.If, sir.Switch, sir.Block, sir.Lock:
			at, err := f.place(l)
			switch {
			case err != nil || at.shape != whole:
			case at.last > at.first:
				at.construct = f.statements[at.first].Construct
				f.constructs = append(f.constructs, at)
			case l.Kind == sir.If:
				f.ifs[at.first] = l
			}
		case sir.MainProgram, sir.Subroutine, sir.Function:
			f.findDeclaring(l)
			if at, err := f.place(l); err == nil {
				f.units = append(f.units, at)
			}
		}
	}
	f.within, f.unitOf = innermost(f.constructs, len(f.statements), 1), innermost(f.units, len(f.statements), 0)
	f.findLabels()
	return f
}

// innermost returns which of some spans, which it sorts, is the innermost one around each statement. Statements
// of a span behind its first few.
func innermost(spans []*span, statements, behind int) []int {
	slices.SortFunc(spans, func(a, b *span) int {
		if a.first != b.first {
			return a.first - b.first
		}
		return b.last - a.last
	})
	around := make([]int, statements)
	var open []int
	next := 0
	for i := range around {
		for len(open) > 0 && spans[open[len(open)-1]].last < i {
			open = open[:len(open)-1]
		}
		for next < len(spans) && spans[next].first+behind <= i {
			open = append(open, next)
			next++
		}
		around[i] = -1
		if n := len(open); n > 0 {
			around[i] = open[n-1]
		}
	}
	return around
}

// findLabels finds the statements with labels, and which of them end loops.
func (f *Source) findLabels() {
	f.labels = make([]labelsOfUnit, len(f.units))
	for i, s := range f.statements {
		if u := f.unitOf[i]; u >= 0 && s.Label != "" {
			if f.labels[u] == nil {
				f.labels[u] = labelsOfUnit{}
			}
			label := strings.TrimLeft(s.Label, "0")
			f.labels[u][label] = append(f.labels[u][label], i)
		}
	}
	for _, c := range f.constructs {
		if s := f.statements[c.last]; c.Kind == sir.Loop && s.Label != "" {
			f.ends[c.last] = true
		}
	}
}

// starting returns the statement that begins at a byte, or whose action does; -1: there is none.
func (f *Source) starting(at int) (i int, action bool) {
	i, found := slices.BinarySearchFunc(f.statements, at, func(s fortran.Statement, at int) int { return s.Start - at })
	if found {
		return i, false
	}
	if i > 0 && f.statements[i-1].Action == at {
		return i - 1, true
	}
	return -1, false
}

// ending returns the statement that ends before a byte, -1 if there is none.
func (f *Source) ending(at int) int {
	i, _ := slices.BinarySearchFunc(f.statements, at, func(s fortran.Statement, at int) int { return s.Start - at })
	for i--; i >= 0; i-- { // a line of the preprocessor may be inside a statement
		if f.statements[i].End == at {
			return i
		}
		if k := f.statements[i].Kind; k != fortran.Preprocessor && k != fortran.Include {
			break
		}
	}
	return -1
}

var errNoStatements = errors.New("it is no statement: measure a statement around it")

// place finds the statements of a region.
func (f *Source) place(l *woven.Region) (*span, error) {
	start, end, ok := l.Span(f.lines, len(f.Text))
	if !ok {
		return nil, errors.New("the source has no such place")
	}
	if l.Kind == sir.Body || l.Kind == sir.Branch {
		return f.placePart(l, start)
	}
	first, isAction := f.starting(start)
	last := f.ending(end)
	if first < 0 || last < first || isAction && last != first {
		return nil, errNoStatements
	}
	at := &span{Region: l, first: first, last: last}
	switch l.Kind {
	case sir.MainProgram, sir.Subroutine, sir.Function:
		at.shape = unit
	case sir.Loop, sir.If, sir.Switch, sir.Block, sir.Lock, sir.Call, sir.Return, sir.Stop, sir.IO, sir.Allocation, sir.OpenMP:
		if isAction {
			at.shape = action
		}
	default:
		return nil, fmt.Errorf("a region of the type %s is not executed as a whole", l.Kind)
	}
	return at, nil
}

// placePart finds the statements of a body or a branch: those between the statement that begins it, and the one that
// ends it.
func (f *Source) placePart(l *woven.Region, start int) (*span, error) {
	if l.Around == nil {
		return nil, errNoStatements
	}
	around, err := f.place(l.Around)
	if err != nil {
		return nil, err
	}
	begin, isAction := f.starting(start)
	if isAction {
		return &span{Region: l, first: begin, last: begin, shape: action}, nil
	}
	if begin < 0 || around.last <= around.first {
		return nil, errNoStatements
	}
	if l.Kind == sir.Body || l.Form == "then" {
		begin = around.first
	}
	at := &span{Region: l, first: begin + 1, last: around.last - 1, shape: part}
	for _, other := range l.Around.Regions {
		column := 0
		if other.Code != nil {
			column = other.Code.Column
		}
		if i, _ := f.starting(f.lines.Offset(other.Line, column)); other.Kind == sir.Branch && i > begin && i-1 < at.last && i > at.first-1 && other.ID != l.ID {
			at.last = min(at.last, i-1)
		}
	}
	return at, nil
}

// Jumps reports whether a macro with a text may leave what is around it.
func Jumps(macro []byte) bool { return jump.Match(macro) }

var jump = regexp.MustCompile(`(?i)\b(?:return|go\s*to|cycle|exit|stop)\b`)

// allowed refuses regions that cannot begin or end with statements of their own.
func (f *Source) allowed(at *span) error {
	if len(f.statements) > mostStatements {
		return fmt.Errorf("its source has more than %d statements", mostStatements)
	}
	if len(at.Note()) > woven.LongestID {
		return errors.New("its id is too long")
	}
	for i := at.first; i <= at.last; i++ {
		s := &f.statements[i]
		switch {
		case s.Kind == fortran.Include && at.shape != unit:
			return fmt.Errorf("a file is included in it, at line %d: it may contain jumps", f.lines.Of(s.Start))
		case s.Broken:
			return fmt.Errorf("a line of the preprocessor is inside a statement, at line %d", f.lines.Of(s.Start))
		}
	}
	next := at.last + 1
	for next < len(f.statements) && f.statements[next].Kind == fortran.Preprocessor {
		next++
	}
	if next < len(f.statements) && f.statements[next].Broken {
		return errors.New("a line of the preprocessor is inside its last statement")
	}
	return errors.Join(f.pure(at), f.undivided(at.first, at.last), f.ofLoop(at), f.ofDirective(at), f.macrosIn(at))
}

// pure refuses regions of procedures that may not call others.
func (f *Source) pure(at *span) error {
	for l := at.Region; l != nil; l = l.Around {
		switch {
		case l.Kind == sir.Loop && l.Form == "concurrent" && l != at.Region:
			return errors.New("it is in DO CONCURRENT, which calls pure procedures only: measure the loop")
		case l.Kind == sir.Block && (l.Form == "where" || l.Form == "forall") && l != at.Region:
			return fmt.Errorf("it is in %s, which contains assignments only: measure that", strings.ToUpper(l.Form))
		}
	}
	u := f.unitOf[at.first]
	if u < 0 {
		return errors.New("the unit around it was not understood")
	}
	h := &f.statements[f.units[u].first]
	if h.Pure {
		return errors.New("its procedure is pure or elemental, and calls pure procedures only: measure the calls of it")
	}
	if strings.HasPrefix(h.Text, "moduleprocedure") {
		return errors.New("its interface is in another place, and may say that it is pure: repeat the interface here, or measure the calls of it")
	}
	for l := f.units[u].Region; l != nil; l = l.Around {
		if line := f.declaring[l]; line > 0 {
			return fmt.Errorf("line %d requires that each procedure is declared", line)
		}
	}
	return nil
}

// findDeclaring finds out whether a unit has to declare what it calls.
func (f *Source) findDeclaring(l *woven.Region) {
	start, _, _ := l.Span(f.lines, len(f.Text))
	i, _ := f.starting(start)
	for ; i >= 0 && i < len(f.statements); i++ {
		s := &f.statements[i]
		if strings.HasPrefix(s.Text, "implicitnone(") && strings.Contains(s.Text, "external") {
			f.declaring[l] = f.lines.Of(s.Start)
		}
		if s.Kind == fortran.Executed || s.Kind == fortran.Contains || s.Kind == fortran.UnitEnd {
			return
		}
	}
}

// undivided checks that conditionals of the preprocessor begin and end among statements.
func (f *Source) undivided(first, last int) error {
	depth := 0
	for i := first; i <= last && depth >= 0; i++ {
		if s := &f.statements[i]; s.Kind == fortran.Preprocessor {
			depth = conditionalDepth(depth, s.Text)
		}
	}
	if depth != 0 {
		return errDivided
	}
	return nil
}

var errDivided = errors.New("a conditional of the preprocessor begins in it and ends outside, or the other way round")

// conditionalDepth returns the number of open conditionals behind a line of the preprocessor, -1 if another branch
// of an outer one begins there.
func conditionalDepth(depth int, line string) int {
	switch {
	case strings.HasPrefix(line, "if"):
		return depth + 1
	case strings.HasPrefix(line, "endif"):
		return depth - 1
	case strings.HasPrefix(line, "el") && depth == 0:
		return -1
	}
	return depth
}

// ofLoop refuses what the labels that end loops do not allow.
func (f *Source) ofLoop(at *span) error {
	end := at.last
	if at.Kind == sir.Body {
		end++
	}
	if !f.ends[end] {
		return nil
	}
	inner := f.constructs[f.within[end]]
	outer := inner
	for i := f.within[inner.first]; i >= 0 && f.constructs[i].last == end; i = f.within[outer.first] {
		outer = f.constructs[i]
	}
	line := f.lines.Of(f.statements[end].Start)
	text := f.statements[end].Text
	switch {
	case at.first <= outer.first:
		return nil
	case at.Kind != sir.Loop && text != "continue" && !strings.HasPrefix(text, "enddo"), at.first == end:
		return fmt.Errorf("the statement that ends a loop, at line %d, has to be the last one: end the loop with CONTINUE", line)
	case at.Kind == sir.Loop:
		return fmt.Errorf("the loop around it ends with the same statement, at line %d", line)
	case at.first != inner.first+1:
		return fmt.Errorf("the loop inside it ends with the same statement, at line %d", line)
	}
	return nil
}

// ofDirective refuses what directives of OpenMP, and of compilers, require of the statements that follow them.
func (f *Source) ofDirective(at *span) error {
	if at.Kind == sir.OpenMP && strings.HasPrefix(at.Form, "section") && !strings.HasPrefix(at.Form, "sections") {
		return errors.New("the sections of a directive are no statements of their own: measure a region inside")
	}
	if around := at.Around; around != nil && around.Kind == sir.OpenMP && at.shape != part && at.Kind != sir.OpenMP {
		for _, w := range strings.Fields(around.Form) {
			if slices.Contains([]string{"do", "simd", "taskloop", "distribute", "loop", "atomic", "workshare"}, w) {
				return fmt.Errorf("the directive %s needs its statement unchanged: measure the directive, or a region inside", around.Form)
			}
		}
	}
	if at.shape == whole && at.Kind == sir.Loop && f.directed(at.first) {
		return errors.New("a directive of the compiler precedes it, and needs it unchanged: measure its body")
	}
	return f.collapsed(at)
}

// collapsed refuses what is between loops that a directive makes one of.
func (f *Source) collapsed(at *span) error {
	if at.Kind != sir.Loop && at.Kind != sir.Body {
		return nil
	}
	for l := at.Around; l != nil && (l.Kind == sir.Loop || l.Kind == sir.Body || l.Kind == sir.OpenMP); l = l.Around {
		if l.Kind != sir.OpenMP {
			continue
		}
		start, _, _ := l.Span(f.lines, len(f.Text))
		if i, _ := f.starting(start); i >= 0 {
			for _, clause := range []string{"collapse", "ordered", "tile"} {
				if strings.Contains(f.statements[i].Text, clause) {
					return errors.New("a directive of OpenMP makes one loop of this one and others: measure the directive, or a region inside all loops")
				}
			}
		}
		return nil
	}
	return nil
}

// directives matches comments that say something to compilers.
var directives = regexp.MustCompile(`(?i)^\s*[!c*]\s*(gcc\$|dir\$|dec\$|ibm\*|\$acc|pgi\$|ocl)`)

// directed reports whether such a comment is before a statement.
func (f *Source) directed(i int) bool {
	for line := f.lines.Of(f.statements[i].Start) - 1; line >= 1; line-- {
		text := f.line(line)
		if directives.Match(text) {
			return true
		}
		if !f.comment(text) {
			return false
		}
	}
	return false
}

// line returns a line of the source.
func (f *Source) line(number int) []byte {
	end := len(f.Text)
	if number < len(f.lines) {
		end = int(f.lines[number])
	}
	return f.Text[f.lines[number-1]:end]
}

// comment reports whether a line has no statement.
func (f *Source) comment(line []byte) bool {
	text := strings.TrimSpace(string(line))
	return text == "" || text[0] == '!' || f.fixed && strings.ContainsRune("cC*dD", rune(line[0]))
}

// macrosIn refuses what contains macros with jumps, and statements that are compiled with OpenMP only and jump.
func (f *Source) macrosIn(at *span) error {
	if at.last < at.first {
		return nil
	}
	text := f.Text[f.statements[at.first].Start:f.statements[at.last].End]
	for _, line := range woven.LinesWith(text, "$") {
		if conditional.Match(line) && jump.Match(line) {
			return errors.New("a line that is compiled with OpenMP only jumps")
		}
	}
	if len(f.program.Jumping) == 0 {
		return nil
	}
	for _, word := range words.FindAll(text, -1) {
		if f.program.Jumping[string(word)] {
			return fmt.Errorf("the macro %s in it contains a jump", word)
		}
	}
	return nil
}

var (
	words       = regexp.MustCompile(`\w+`)
	conditional = regexp.MustCompile(`(?i)^[ \t]*[!c*]\$[ \t0-9]`)
)
