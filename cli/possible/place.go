//go:build linux && amd64

package possible

import (
	"errors"

	"mirador/omis/code/x86/relocate"
	"mirador/omis/linux/patch"
	"mirador/omis/place/kernel"
)

// refusedAt is why a placement has no probe at one of several addresses; "" if it can have probes at all of them.
type refusedAt struct {
	addr uint64
	why  string
}

// inline returns why no code can be put at addresses.
func (c *code) inline(addrs []uint64) (r refusedAt) {
	for i, err := range patch.Judge(addrs, c) {
		if err != nil {
			return refusedAt{addrs[i], reason(err)}
		}
	}
	return r
}

// reason returns an error as a document says it. The document has the address.
func reason(err error) string {
	var moved *relocate.Error
	if errors.As(err, &moved) {
		return moved.Why
	}
	return err.Error()
}

// kernel returns why no uprobe can be at an address.
func (c *code) kernel(addr uint64) string {
	s, rest, err := c.at(addr)
	if err != nil {
		return err.Error()
	}
	if _, splits := s.Splits(addr); splits {
		return inMiddle
	}
	return kernel.Unsuited(rest)
}

// inMiddle is why uprobes and breakpoints are refused inside an instruction.
const inMiddle = "another instruction begins before it and contains it"

// trap returns why no breakpoint can be at an address.
func (c *code) trap(addr uint64) string {
	s, rest, err := c.at(addr)
	if err != nil {
		return err.Error()
	}
	if _, splits := s.Splits(addr); splits {
		return inMiddle
	}
	if _, err := relocate.Instruction(rest, addr, addr); err != nil {
		return reason(err)
	}
	return ""
}

// at returns the surveyor of an address, and the code there.
func (c *code) at(addr uint64) (*patch.Surveyor, []byte, error) {
	s, err := c.Surveyor(addr)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Module.Code(addr-s.Base, addr-s.Base+relocate.MaxLen), nil
}

// first returns the first address that is refused.
func first(addrs []uint64, refused func(uint64) string) (r refusedAt) {
	for _, addr := range addrs {
		if why := refused(addr); why != "" {
			return refusedAt{addr, why}
		}
	}
	return r
}
