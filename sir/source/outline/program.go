package outline

import (
	"fmt"
	"slices"
	"strings"

	"mirador/sir"
)

// Limits of a structure: a document with more regions takes gigabytes of memory.
const (
	MostRegions = 400_000
	MostDepth   = 200
)

// Program returns the structure of files that are compiled to one program.
//
// Ids are those of the program's machine code: NAME:SYMBOL for a unit, and a path of loops and calls
// inside it. Branches and blocks are no part of a path, because they are none in machine code.
func Program(name string, files []*File) sir.Program {
	b := &builder{program: name, used: map[string]int{}, symbols: map[string]int{}}
	for _, f := range files {
		b.countSymbols(f.Nodes)
	}
	p := sir.Program{Path: name}
	for _, f := range files {
		b.file, b.lines = f, lineStarts(f.Text)
		p.Regions = append(p.Regions, b.regions(units(f.Nodes, 0), 0, len(f.Text), around{scope: &scope{}})...)
		p.Resources = append(p.Resources, b.resource())
	}
	return p
}

// units returns the units among nodes and inside the others. Outside of functions, what initialises
// variables has no unit that it belongs to.
func units(nodes []*Node, depth int) (list []*Node) {
	for _, n := range nodes {
		if IsUnit(n.Kind) {
			list = append(list, n)
		} else if depth < MostDepth {
			list = append(list, units(n.Nodes, depth+1)...)
		}
	}
	return list
}

type builder struct {
	program string
	symbols map[string]int // number of units with each
	used    map[string]int // of each id
	count   int            // of regions
	file    *File
	lines   []int
}

func (b *builder) countSymbols(nodes []*Node) {
	for _, n := range nodes {
		if IsUnit(n.Kind) {
			b.symbols[n.symbol()]++
			b.countSymbols(n.Nodes)
		}
	}
}

func (n *Node) symbol() string {
	if n.Symbol != "" {
		return n.Symbol
	}
	return n.Name
}

// around is what is around a region.
type around struct {
	*scope
	choice *choice // directly around the region, nil if there is none
	depth  int
}

// regions returns the regions from one place to another. It leaves out those that overlap others.
func (b *builder) regions(nodes []*Node, from, to int, a around) (list []sir.Region) {
	slices.SortStableFunc(nodes, func(a, b *Node) int { return a.Start - b.Start })
	for _, n := range nodes {
		switch {
		case n.Start < from || n.End > to || n.End <= n.Start:
			b.file.Miss(n.Start, n.End, fmt.Sprintf("this region (%s) overlaps others", n.Kind))
			continue
		case a.depth >= MostDepth:
			b.file.Miss(n.Start, to, fmt.Sprintf("regions inside %d others are not listed", MostDepth))
			return list
		case b.count >= MostRegions:
			b.file.Miss(n.Start, to, fmt.Sprintf("a structure has at most %d regions", MostRegions))
			return list
		}
		b.count++
		from = n.End
		list = append(list, b.region(n, a))
	}
	return list
}

func (b *builder) region(n *Node, a around) sir.Region {
	first, last := b.at(n.Start), b.at(n.End-1)
	r := sir.Region{Kind: n.Kind, Form: n.Form, File: b.file.Path, Line: first.line, Unknown: n.Unknown}
	inside := around{scope: a.scope, depth: a.depth + 1}
	if n.Before && a.outer != nil {
		inside.scope = a.outer
	}
	if IsUnit(n.Kind) {
		r.ID, r.Symbol = b.unit(n, inside.scope), n.Symbol
		inside.scope = &scope{id: r.ID}
		r.Extent = &sir.Extent{Column: first.column, EndLine: last.line, EndColumn: last.column}
	} else {
		r.ID = a.code(n, inside.scope)
		r.Code = &sir.Code{Column: first.column, EndLine: last.line, EndColumn: last.column, Callee: n.Callee, Falls: n.Falls, Empty: n.Empty}
		switch n.Kind {
		case sir.Loop:
			inside.scope = &scope{id: r.ID, outer: inside.scope}
		case sir.If, sir.Switch, sir.Try:
			inside.choice = &choice{id: r.ID}
		}
	}
	if r.Name = n.Name; r.Name == "" {
		r.Name = r.ID[strings.LastIndexByte(r.ID, '/')+1:]
	}
	if IsUnit(n.Kind) && !HasCode(n.Kind) {
		n.Nodes = units(n.Nodes, 0)
	}
	r.Regions = b.regions(n.Nodes, n.Start, n.End, inside)
	return r
}
