package fortran

import (
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// directive handles a directive of OpenMP. Its region ends with its end directive, or with the loop
// that follows.
func (p *parser) directive(text string, start, end int) {
	if f := p.top(); p.skipped() || p.unit() == nil || f.kind == interfaceFrame || f.kind == typeFrame {
		return
	}
	defer func() { p.last = max(p.last, end) }()
	name, d := outline.OpenMPDirective(text)
	if d == outline.EndOfBlock {
		p.endDirective(strings.TrimSpace(strings.TrimPrefix(name, "end")), start, end)
		return
	}
	p.endLoopDirective(nil)
	n := &outline.Node{Kind: sir.OpenMP, Form: name, Start: start, End: end}
	switch d {
	case outline.NoDirective:
		p.file.Miss(start, end, "this directive of OpenMP is not known")
	case outline.Declaring:
	case outline.Standalone:
		p.add(n)
	case outline.Separator:
		if f := p.top(); f.kind == directiveFrame && f.word == name {
			p.pop(p.last)
		}
		p.add(n)
		p.push(&frame{kind: directiveFrame, word: name, node: n})
	default:
		p.add(n)
		p.push(&frame{kind: directiveFrame, word: name, node: n, loop: d == outline.OfLoop})
	}
}

// endDirective closes the directive that an end directive names.
func (p *parser) endDirective(name string, start, end int) {
	for i := len(p.frames) - 1; i > 0; i-- {
		f := p.frames[i]
		if f.kind != directiveFrame {
			break
		}
		if f.word == name || name == "atomic" && strings.HasPrefix(f.word, name) {
			for len(p.frames)-1 > i {
				p.pop(p.last)
			}
			p.pop(end)
			return
		}
	}
	p.file.Miss(start, end, "this end directive has no beginning")
}

// loopEnded marks the directive whose loop has ended. An end directive may follow.
func (p *parser) loopEnded(end int) {
	if f := p.top(); f.kind == directiveFrame && f.loop {
		f.done, f.node.End = true, end
	}
}

// endLoopDirective closes directives whose loop or statement has ended.
func (p *parser) endLoopDirective(s *statement) {
	for f := p.top(); f.kind == directiveFrame; f = p.top() {
		switch {
		case f.done:
			p.pop(f.node.End)
		case f.loop && s != nil && !strings.HasPrefix(s.text, "do") && !strings.Contains(s.text, ":do"):
			p.file.Miss(f.node.Start, f.node.End, "no loop follows this directive")
			p.pop(f.node.End)
		default:
			return
		}
	}
}

// conditional is a conditional of the preprocessor.
type conditional struct {
	skip  bool // this branch
	taken bool // one of its branches
}

// conditionals are those that are open.
type conditionals []conditional

// skipped reports whether the preprocessor leaves out the line. The first branch of each conditional
// is read, and the second one of #if 0.
func (all conditionals) skipped() bool {
	for _, c := range all {
		if c.skip {
			return true
		}
	}
	return false
}

// line reads a line of the preprocessor. It reports whether another branch begins that is left out.
func (all *conditionals) line(word, rest string) (skips bool) {
	open := *all
	switch word {
	case "if", "ifdef", "ifndef":
		off := word == "if" && strings.TrimSpace(rest) == "0"
		*all = append(open, conditional{skip: off, taken: !off})
	case "elif", "else":
		if n := len(open); n > 0 {
			c := &open[n-1]
			skips = c.taken
			c.skip, c.taken = skips, true
		}
	case "endif":
		if n := len(open); n > 0 {
			*all = open[:n-1]
		}
	}
	return skips
}

func (p *parser) skipped() bool { return p.ifs.skipped() }

func (p *parser) preprocessor(line string, start, end int) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if p.ifs.line(word, rest) {
		p.file.Miss(start, end, "one branch of a conditional is read: this one is not")
	}
	if word == "include" && !p.skipped() {
		p.include(rest, start, end)
	}
}

// include records that an included file is not read.
func (p *parser) include(text string, start, end int) {
	p.file.Miss(start, end, "what "+includedName(text)+" contains is not read here")
}

func includedName(text string) string {
	i := strings.IndexAny(text, `'"<`)
	if i < 0 {
		return "the included file"
	}
	name := text[i+1:]
	if j := strings.IndexAny(name, `'">`); j >= 0 {
		name = name[:j]
	}
	return name
}
