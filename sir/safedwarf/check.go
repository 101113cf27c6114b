package safedwarf

import (
	"bytes"
	"context"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

// Limits of what a file may make debug/dwarf allocate. It reads all tables of abbreviations
// into values about twelve times their size, keeps a value for each unit, and copies each
// string of an entry. Real programs are far below them.
const (
	mostUnits      = 1 << 20
	mostAttributes = 128     // of one abbreviation
	mostText       = 1 << 20 // bytes of one string that units share
)

// mostAbbreviations returns the greatest plausible size of the tables of abbreviations.
func mostAbbreviations(info int) int { return 2<<20 + info/16 }

func (d *Data) check(ctx context.Context) error {
	for _, name := range []string{".debug_str", ".debug_line_str"} {
		if err := checkTexts(d.sections[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return checkAbbreviations(ctx, d.sections[".debug_info"], d.sections[".debug_abbrev"])
}

// checkTexts refuses strings that are too long to be copied for each reference.
func checkTexts(b []byte) error {
	for len(b) > mostText {
		n := bytes.IndexByte(b[:mostText+1], 0)
		if n < 0 {
			return fmt.Errorf("a string is longer than %d bytes", mostText)
		}
		b = b[n+1:]
	}
	return nil
}

// checkAbbreviations refuses tables that overlap: debug/dwarf reads the table of every unit,
// so the memory for them would be quadratic in the size of the file.
func checkAbbreviations(ctx context.Context, info, abbrev []byte) error {
	if len(abbrev) > mostAbbreviations(len(info)) {
		return fmt.Errorf("%d bytes of abbreviations for %d bytes of entries", len(abbrev), len(info))
	}
	seen := map[uint64]bool{}
	left, units := 2*len(abbrev)+64, 0
	for u := range unitHeaders(info) {
		if units++; units > mostUnits {
			return fmt.Errorf("more than %d units", mostUnits)
		}
		if u.abbrev >= uint64(len(abbrev)) || seen[u.abbrev] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		seen[u.abbrev] = true
		n, err := abbreviationTable(abbrev[u.abbrev:], left)
		if left -= n; left <= 0 {
			err = errors.New("tables of abbreviations overlap")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// abbreviationTable returns the length of the table at the start of b, at most limit.
func abbreviationTable(b []byte, limit int) (int, error) {
	c := cursor{b: b[:min(len(b), limit)]}
	for len(c.b) > 0 && c.uleb() != 0 {
		c.uleb() // tag
		c.u8()   // children
		for n := 0; len(c.b) > 0; n++ {
			attribute, form := c.uleb(), c.uleb()
			if form == formImplicitConst {
				c.uleb()
			}
			if attribute == 0 && form == 0 {
				break
			}
			if n == mostAttributes {
				return 0, fmt.Errorf("an abbreviation has more than %d attributes", mostAttributes)
			}
		}
	}
	return min(len(b), limit) - len(c.b), nil
}

// Unit has the bounds of the entries of a unit in .debug_info.
type Unit struct {
	First, End       dwarf.Offset
	header           dwarf.Offset
	abbrev           uint64
	version, address uint8 // the version of DWARF, the size of addresses
	wide             bool  // offsets have 8 bytes
}

// Units returns the units of a file, from their headers alone.
func (d *Data) Units() iter.Seq[Unit] { return unitHeaders(d.sections[".debug_info"]) }

// unitHeaders reads the headers of units (DWARF 5, 7.5.1).
func unitHeaders(info []byte) iter.Seq[Unit] {
	le := binary.LittleEndian
	return func(yield func(Unit) bool) {
		const shortest = 12 // bytes read before the length is checked
		for at := uint64(0); at+shortest <= uint64(len(info)); {
			length, width, body := uint64(le.Uint32(info[at:])), uint64(4), at+4
			if length == 0xffffffff {
				length, width, body = le.Uint64(info[at+4:]), 8, at+12
			}
			end := body + length
			if length > uint64(len(info)) || end > uint64(len(info)) || length < 2+width+1 {
				return
			}
			u := Unit{First: dwarf.Offset(body + 2 + width + 1), End: dwarf.Offset(end), header: dwarf.Offset(at), wide: width == 8}
			abbrev := body + 2
			version := le.Uint16(info[body:])
			u.version, u.address = uint8(min(version, 6)), info[u.First-1]
			if version >= 5 {
				if length < 2+1+1+width {
					return
				}
				abbrev = body + 4
				u.address = info[body+3]
				u.First = dwarf.Offset(abbrev + width)
				if kind := info[body+2]; kind == 4 || kind == 5 { // skeleton or split unit: an id follows
					u.First += 8
				}
			}
			u.abbrev = uint64(le.Uint32(info[abbrev:]))
			if width == 8 {
				u.abbrev = le.Uint64(info[abbrev:])
			}
			if !yield(u) {
				return
			}
			at = end
		}
	}
}
