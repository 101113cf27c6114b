package engine

import (
	"mirador/omis"
	"mirador/omis/node"
)

// maxRegisters is more than any processor has.
const maxRegisters = 1024

// bankOf returns the node's access to the registers of a thread.
func bankOf(c *call) (regs node.Registers, p omis.ProcID, tid int, err error) {
	t := c.object.(*thread)
	at := t.proc.at()
	regs, err = capability(at.node, at.node.Can.Registers, c.service)
	return regs, at.id, t.tid, err
}

// within limits a number of registers, counted from the first one, to those that exist: the specification's
// own example reads 32, whatever the processor is (OMIS 5.3.2). A request that begins at another register
// means a certain processor, so it is not limited.
func within(first, n, count int) int {
	if first == 0 {
		return min(n, count)
	}
	return n
}

// span reads which registers are meant.
func (c *call) span() (first, n int, err error) {
	if first, err = c.small(1); err != nil {
		return 0, 0, err
	}
	if n, err = c.small(2); err != nil {
		return 0, 0, err
	}
	return first, n, checkSpan(first, n)
}

func checkSpan(first, n int) error {
	if first < 0 || n < 0 || first > maxRegisters || n > maxRegisters {
		return omis.Errorf(omis.ParameterError, "there are no %d registers from register %d on", n, first)
	}
	return nil
}

func threadReadIntRegs(_ *execution, c *call) ([]omis.Value, error) {
	return readRegisters(c, intCount, node.Registers.ReadIntRegs, omis.Uint)
}

func threadReadFPRegs(_ *execution, c *call) ([]omis.Value, error) {
	return readRegisters(c, fpCount, node.Registers.ReadFPRegs, omis.Float)
}

func threadWriteIntRegs(_ *execution, c *call) ([]omis.Value, error) {
	return nil, writeRegisters(c, omis.Value.Uint64, node.Registers.WriteIntRegs)
}

func threadWriteFPRegs(_ *execution, c *call) ([]omis.Value, error) {
	return nil, writeRegisters(c, omis.Value.Number, node.Registers.WriteFPRegs)
}

func threadGoto(_ *execution, c *call) ([]omis.Value, error) {
	return nil, jump(c, node.Registers.Goto)
}

func threadCall(_ *execution, c *call) ([]omis.Value, error) {
	return nil, jump(c, node.Registers.Call)
}

func intCount(r node.Registers) int {
	n, _ := r.RegisterCounts()
	return n
}

func fpCount(r node.Registers) int {
	_, n := r.RegisterCounts()
	return n
}

// readRegisters reads registers of one kind.
func readRegisters[R any](c *call, count func(node.Registers) int, read func(node.Registers, omis.ProcID, int, int, int) ([]R, error),
	value func(R) omis.Value) ([]omis.Value, error) {
	first, n, err := c.span()
	if err != nil {
		return nil, err
	}
	bank, p, tid, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	regs, err := read(bank, p, tid, first, within(first, n, count(bank)))
	if err != nil {
		return nil, err
	}
	return []omis.Value{omis.List(mapped(regs, value)...)}, nil
}

// writeRegisters writes registers of one kind.
func writeRegisters[R any](c *call, content func(omis.Value) (R, bool), write func(node.Registers, omis.ProcID, int, int, []R) error) error {
	values := c.args[2].List
	first, err := c.small(1)
	if err == nil {
		err = checkSpan(first, min(len(values), maxRegisters+1))
	}
	if err != nil {
		return err
	}
	regs := make([]R, len(values))
	for i, v := range values {
		var ok bool
		if regs[i], ok = content(v); !ok {
			return omis.Errorf(omis.ParameterError, "value %d of val does not fit into a register", i+1)
		}
	}
	bank, p, tid, err := bankOf(c)
	if err != nil {
		return err
	}
	return write(bank, p, tid, first, regs)
}

// jump makes a thread continue at another address.
func jump(c *call, to func(node.Registers, omis.ProcID, int, uint64) error) error {
	addr, err := c.address(1)
	if err != nil {
		return err
	}
	bank, p, tid, err := bankOf(c)
	if err != nil {
		return err
	}
	return to(bank, p, tid, addr)
}
