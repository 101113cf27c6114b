package sir

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The elements of a structure document.
type (
	xmlStructure struct {
		XMLName  xml.Name     `xml:"sir"`
		Programs []xmlProgram `xml:"program"`
	}
	xmlProgram struct {
		Path    string    `xml:"path,attr"`
		BuildID string    `xml:"buildId,attr"`
		Units   []xmlUnit `xml:"unit"`
	}
	xmlUnit struct {
		ID      string    `xml:"id,attr"`
		Name    string    `xml:"name,attr"`
		Symbol  string    `xml:"symbol,attr"`
		Kind    Kind      `xml:"kind,attr"`
		File    string    `xml:"file,attr"`
		Line    int       `xml:"line,attr"`
		Entry   number    `xml:"entry,attr"`
		Size    uint64    `xml:"size,attr"`
		Unknown string    `xml:"unknown,attr"`
		Units   []xmlUnit `xml:"unit"`
		Code    []xmlCode `xml:"codeRegion"`
	}
	xmlCode struct {
		ID          string `xml:"id,attr"`
		Kind        Kind   `xml:"type,attr"`
		Callee      string `xml:"callee,attr"`
		Irreducible bool   `xml:"irreducible,attr"`
		SharedExits bool   `xml:"sharedExits,attr"`
		Uncounted   string `xml:"uncounted,attr"`
		Untimed     string `xml:"untimed,attr"`
		Position    struct {
			File    string `xml:"file,attr"`
			Line    int    `xml:"startLine,attr"`
			Column  int    `xml:"startColumn,attr"`
			EndLine int    `xml:"endLine,attr"`
		} `xml:"position"`
		Ranges []struct {
			Low  number `xml:"low,attr"`
			High number `xml:"high,attr"`
		} `xml:"range"`
		Enter  []xmlEdge `xml:"entry"`
		Leave  []xmlEdge `xml:"exit"`
		Places []struct {
			Address number `xml:"address,attr"`
			Of      string `xml:"of,attr"`
		} `xml:"place"`
		Code []xmlCode `xml:"codeRegion"`
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
	s := &Structure{Programs: make([]Program, len(read.Programs))}
	for i, p := range read.Programs {
		s.Programs[i] = Program{Path: p.Path, BuildID: p.BuildID, Regions: decodeUnits(p.Units)}
	}
	return s, nil
}

func decodeUnits(units []xmlUnit) (regions []Region) {
	for _, u := range units {
		regions = append(regions, Region{
			ID: u.ID, Name: u.Name, Symbol: u.Symbol, Kind: u.Kind, File: u.File, Line: u.Line, Entry: uint64(u.Entry), Size: u.Size,
			Unknown: u.Unknown, Regions: append(decodeUnits(u.Units), decodeCode(u.Code)...),
		})
	}
	return regions
}

func decodeCode(list []xmlCode) (regions []Region) {
	for _, x := range list {
		p := &x.Position
		c := &Code{
			Column: p.Column, EndLine: p.EndLine, Callee: x.Callee, Irreducible: x.Irreducible, Enter: decodeEdges(x.Enter), Leave: decodeEdges(x.Leave),
			Uncounted: x.Uncounted, Untimed: x.Untimed, SharedExits: x.SharedExits,
		}
		r := Region{ID: x.ID, Name: x.ID[strings.LastIndexByte(x.ID, '/')+1:], Kind: x.Kind, File: p.File, Line: p.Line, Code: c, Regions: decodeCode(x.Code)}
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
			} else {
				c.Exits = append(c.Exits, uint64(place.Address))
			}
		}
		regions = append(regions, r)
	}
	return regions
}

func decodeEdges(list []xmlEdge) (edges []Edge) {
	for _, e := range list {
		edges = append(edges, Edge{uint64(e.From), uint64(e.To)})
	}
	return edges
}
