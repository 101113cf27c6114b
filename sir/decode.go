package sir

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
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
		ID     string    `xml:"id,attr"`
		Name   string    `xml:"name,attr"`
		Symbol string    `xml:"symbol,attr"`
		Kind   Kind      `xml:"kind,attr"`
		File   string    `xml:"file,attr"`
		Line   int       `xml:"line,attr"`
		Entry  string    `xml:"entry,attr"` // with the prefix 0x
		Size   uint64    `xml:"size,attr"`
		Units  []xmlUnit `xml:"unit"`
	}
)

// Decode reads a structure document.
func Decode(r io.Reader) (*Structure, error) {
	var read xmlStructure
	if err := xml.NewDecoder(r).Decode(&read); err != nil {
		return nil, fmt.Errorf("cannot read the structure document: %w", err)
	}
	s := &Structure{Programs: make([]Program, len(read.Programs))}
	for i, p := range read.Programs {
		regions, err := decodeUnits(p.Units)
		if err != nil {
			return nil, fmt.Errorf("cannot read the structure of %s: %w", p.Path, err)
		}
		s.Programs[i] = Program{Path: p.Path, BuildID: p.BuildID, Regions: regions}
	}
	return s, nil
}

func decodeUnits(units []xmlUnit) (regions []Region, err error) {
	for _, u := range units {
		r := Region{ID: u.ID, Name: u.Name, Symbol: u.Symbol, Kind: u.Kind, File: u.File, Line: u.Line, Size: u.Size}
		if r.Entry, err = strconv.ParseUint(u.Entry, 0, 64); err != nil {
			return nil, fmt.Errorf("unit %s: %w", u.ID, err)
		}
		if r.Regions, err = decodeUnits(u.Units); err != nil {
			return nil, err
		}
		regions = append(regions, r)
	}
	return regions, nil
}
