package engine

import (
	"mirador/omis"
	"mirador/omis/program"
)

// rowKey identifies a thread of a process, also one that has ended.
type rowKey struct {
	tid     int
	started uint64
}

// threadOfRow returns the token of the thread that a row of a store belongs to: always the same token.
func (r *registry) threadOfRow(p *process, row *program.Row) omis.Token {
	key := rowKey{row.TID, row.Started}
	r.mu.RLock()
	token, known := p.rowTokens[key]
	r.mu.RUnlock()
	if known {
		return token
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if token, known := p.rowTokens[key]; known {
		return token
	}
	return r.nameRowLocked(p, key, row)
}

func (r *registry) nameRowLocked(p *process, key rowKey, row *program.Row) omis.Token {
	token := r.newRowTokenLocked(p, row)
	if p.rowTokens == nil {
		p.rowTokens, p.hasRow = make(map[rowKey]omis.Token), make(map[omis.Token]bool)
	}
	p.rowTokens[key], p.hasRow[token] = token, true
	r.grownLocked(p)
	return token
}

// newRowTokenLocked finds the token for a row that is read for the first time. What the tables have under
// its number may be a thread that had the number before, or has it now.
func (r *registry) newRowTokenLocked(p *process, row *program.Row) omis.Token {
	t := p.threads[row.TID]
	if t != nil && p.hasRow[t.token] {
		if !row.Alive {
			return r.newIdent(omis.ClassThread).token
		}
		r.dropThreadLocked(t)
		t = nil
	}
	switch {
	case t != nil:
		return t.token
	case row.Alive:
		return r.threadLocked(p, row.TID).token
	}
	if former := p.former[row.TID]; former != "" && !p.hasRow[former] {
		return former
	}
	return r.newIdent(omis.ClassThread).token
}

// rememberThreads keeps the tokens of threads that end, for rows that are read later.
func (r *registry) rememberThreads(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.former == nil {
		p.former = make(map[int]omis.Token)
	}
}
