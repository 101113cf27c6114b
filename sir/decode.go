package sir

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The elements of a structure document.
type (
	xmlStructure struct {
		XMLName  xml.Name     `xml:"sir"`
		Producer string       `xml:"producer,attr"`
		Programs []xmlProgram `xml:"program"`
	}
	xmlProgram struct {
		Path      string        `xml:"path,attr"`
		BuildID   string        `xml:"buildId,attr"`
		Resources []xmlResource `xml:"resource"`
		Units     []xmlUnit     `xml:"unit"`
		Markers   []xmlCode     `xml:"codeRegion"`
	}
	xmlResource struct {
		In       string `xml:"in,attr"`
		Out      string `xml:"out,attr"`
		Hash     string `xml:"hash,attr"`
		Language string `xml:"language,attr"`
		MoreGaps int    `xml:"moreGaps,attr"`
		Gaps     []struct {
			xmlPosition
			Reason string `xml:"reason,attr"`
		} `xml:"gap"`
	}
	xmlPosition struct {
		File      string `xml:"file,attr"`
		Line      int    `xml:"startLine,attr"`
		Column    int    `xml:"startColumn,attr"`
		EndLine   int    `xml:"endLine,attr"`
		EndColumn int    `xml:"endColumn,attr"`
	}
	xmlUnit struct {
		ID      string `xml:"id,attr"`
		Name    string `xml:"name,attr"`
		Symbol  string `xml:"symbol,attr"`
		Kind    Kind   `xml:"kind,attr"`
		Form    string `xml:"form,attr"`
		File    string `xml:"file,attr"`
		Line    int    `xml:"line,attr"`
		Entry   number `xml:"entry,attr"`
		Size    uint64 `xml:"size,attr"`
		Unknown string `xml:"unknown,attr"`
		xmlPlacements
		Position *xmlPosition `xml:"position"`
		Units    []xmlUnit    `xml:"unit"`
		Code     []xmlCode    `xml:"codeRegion"`
	}
	xmlCode struct {
		ID          string `xml:"id,attr"`
		Kind        Kind   `xml:"type,attr"`
		Form        string `xml:"form,attr"`
		Callee      string `xml:"callee,attr"`
		Irreducible bool   `xml:"irreducible,attr"`
		Falls       bool   `xml:"falls,attr"`
		Empty       bool   `xml:"empty,attr"`
		SharedExits bool   `xml:"sharedExits,attr"`
		xmlPlacements
		Position xmlPosition `xml:"position"`
		Ranges   []struct {
			Low  number `xml:"low,attr"`
			High number `xml:"high,attr"`
		} `xml:"range"`
		Enter  []xmlEdge  `xml:"entry"`
		Leave  []xmlEdge  `xml:"exit"`
		Places []xmlPlace `xml:"place"`
		Code   []xmlCode  `xml:"codeRegion"`
		Units  []xmlUnit  `xml:"unit"`
	}
	xmlPlace struct {
		Address number `xml:"address,attr"`
		Of      string `xml:"of,attr"`
		When    *uint8 `xml:"condition,attr"`
	}
	xmlEdge struct {
		From number `xml:"from,attr"`
		To   number `xml:"to,attr"`
	}
)

// number is an address with the prefix 0x.
type number uint64

// UnmarshalText reads a number with a prefix.
func (n *number) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 64)
	*n = number(v)
	return err
}

// Decode reads a structure document.
func Decode(r io.Reader) (*Structure, error) {
	var read xmlStructure
	if err := xml.NewDecoder(r).Decode(&read); err != nil {
		return nil, fmt.Errorf("cannot read the structure document: %w", err)
	}
	s := &Structure{Producer: read.Producer, Programs: make([]Program, len(read.Programs))}
	for i, p := range read.Programs {
		s.Programs[i] = Program{Path: p.Path, BuildID: p.BuildID, Resources: decodeResources(p.Resources), Regions: decodeUnits(p.Units), Markers: decodeCode(p.Markers)}
	}
	return s, nil
}

func decodeResources(list []xmlResource) (resources []Resource) {
	for _, x := range list {
		r := Resource{In: x.In, Out: x.Out, Hash: x.Hash, Language: x.Language, MoreGaps: x.MoreGaps}
		for _, g := range x.Gaps {
			r.Gaps = append(r.Gaps, Gap{g.Line, g.Column, g.EndLine, g.EndColumn, g.Reason})
		}
		resources = append(resources, r)
	}
	return resources
}

func decodeUnits(units []xmlUnit) (regions []Region) {
	for _, u := range units {
		r := Region{
			ID: u.ID, Name: u.Name, Symbol: u.Symbol, Kind: u.Kind, Form: u.Form, File: u.File, Line: u.Line, Entry: uint64(u.Entry), Size: u.Size,
			Unknown: u.Unknown, Placements: u.decode(true), Regions: inOrder(append(decodeUnits(u.Units), decodeCode(u.Code)...)),
		}
		if p := u.Position; p != nil {
			r.Extent = &Extent{p.Column, p.EndLine, p.EndColumn}
		}
		regions = append(regions, r)
	}
	return regions
}

func decodeCode(list []xmlCode) (regions []Region) {
	for _, x := range list {
		p := &x.Position
		c := &Code{
			Column: p.Column, EndLine: p.EndLine, EndColumn: p.EndColumn, Callee: x.Callee, Irreducible: x.Irreducible, Falls: x.Falls, Empty: x.Empty, Enter: decodeEdges(x.Enter), Leave: decodeEdges(x.Leave),
			Uncounted: x.Uncounted, Untimed: x.Untimed, SharedExits: x.SharedExits,
		}
		r := Region{ID: x.ID, Name: x.ID[strings.LastIndexByte(x.ID, '/')+1:], Kind: x.Kind, Form: x.Form, File: p.File, Line: p.Line, Code: c, Placements: x.decode(false),
			Regions: inOrder(append(decodeUnits(x.Units), decodeCode(x.Code)...))}
		if x.Kind == Marker {
			_, r.Name, _ = strings.Cut(x.ID, ":")
			r.Symbol = r.Name
		}
		if slices.ContainsFunc(x.Places, func(p xmlPlace) bool { return p.When != nil }) {
			c.When = map[uint64]Condition{}
		}
		for i, part := range x.Ranges {
			c.Ranges = append(c.Ranges, Range{uint64(part.Low), uint64(part.High)})
			r.Size += uint64(part.High - part.Low)
			if i == 0 {
				r.Entry = uint64(part.Low)
			}
		}
		for _, place := range x.Places {
			if place.Of == "entry" {
				c.Entries = append(c.Entries, uint64(place.Address))
				if place.When != nil {
					c.When[uint64(place.Address)] = Condition(*place.When + 1)
				}
			} else {
				c.Exits = append(c.Exits, uint64(place.Address))
			}
		}
		regions = append(regions, r)
	}
	return regions
}

// inOrder orders the units and the other regions inside a region of a source as they are in the source.
func inOrder(regions []Region) []Region {
	if !slices.ContainsFunc(regions, func(r Region) bool { return r.Extent != nil }) {
		return regions
	}
	column := func(r *Region) int {
		if r.Code != nil {
			return r.Code.Column
		}
		return r.Extent.Column
	}
	slices.SortStableFunc(regions, func(a, b Region) int {
		if a.Extent == nil && a.Code == nil || b.Extent == nil && b.Code == nil {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(column(&a), column(&b)))
	})
	return regions
}

func decodeEdges(list []xmlEdge) (edges []Edge) {
	for _, e := range list {
		edges = append(edges, Edge{uint64(e.From), uint64(e.To)})
	}
	return edges
}
