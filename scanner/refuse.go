package scanner

import "fmt"

// FrameError is a run of bytes that a decoder refused.
//
// Bytes may hold a card that the table has not shown (game.md section 4), so
// Error leaves them out: they are for the journal.
type FrameError struct {
	Protocol string
	Reason   Reason
	Offset   int64  // of the first refused byte, counted since the decoder was new
	Bytes    []byte // the refused bytes; longer runs are reported in pieces
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("%s: %s: %d bytes refused at offset %d", e.Protocol, e.Reason, len(e.Bytes), e.Offset)
}

// Reason why bytes were refused. Its text is stable: metrics and health use it.
type Reason uint8

const (
	Garbage      Reason = iota + 1 // no frame starts here
	Truncated                      // the next frame began before this one's end, or the line was lost
	BadSeqChar                     // the sequence number is none
	BadByte                        // a control character within a frame
	BadLength                      // longer than any frame, or than this code allows
	BadChecksum                    // the checksum is another one, or none
	BadCode                        // no such telegram
	BadPayload                     // a payload byte has bits that its field does not
	BadIntention                   // a card for no known place
	BadIndex                       // no such place in the hand or the burn, or no such wire
	BadCard                        // no such card, or no face where one is named
	BadMode                        // a card drawn in no known mode
	BadVerdict                     // no such outcome
	BadParity                      // a bit, or any odd number of them, is wrong
	LostEdges                      // edges are missing
	BothWires                      // pulses on two wires at once
	TooClose                       // pulses that follow each other faster than any reader sends them
	Glitch                         // a pulse that is no part of anything
	NoSample                       // a strobe without the levels that belong to it
	LateSample                     // levels from when the code may have been gone
	Unsteady                       // levels that changed while they were read
	SameTag                        // a tag that lies in another box
	reasons      = iota + 1
)

var reasonText = [reasons]string{
	Garbage:      "garbage",
	Truncated:    "truncated",
	BadSeqChar:   "bad_seq_char",
	BadByte:      "bad_byte",
	BadLength:    "bad_length",
	BadChecksum:  "bad_checksum",
	BadCode:      "bad_code",
	BadPayload:   "bad_payload",
	BadIntention: "bad_intention",
	BadIndex:     "bad_index",
	BadCard:      "bad_card",
	BadMode:      "bad_mode",
	BadVerdict:   "bad_verdict",
	BadParity:    "bad_parity",
	LostEdges:    "lost_edges",
	BothWires:    "both_wires",
	TooClose:     "too_close",
	Glitch:       "glitch",
	NoSample:     "no_sample",
	LateSample:   "late_sample",
	Unsteady:     "unsteady",
	SameTag:      "same_tag",
}

// Reasons there are, for whoever lists them.
func Reasons() []Reason {
	all := make([]Reason, 0, reasons-1)
	for r := Garbage; r < reasons; r++ {
		all = append(all, r)
	}
	return all
}

// String is the reason's stable text.
func (r Reason) String() string {
	if r == 0 || r >= reasons {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return reasonText[r]
}

// MarshalText is String, or an error for no reason at all.
func (r Reason) MarshalText() ([]byte, error) {
	if r == 0 || r >= reasons {
		return nil, fmt.Errorf("%v is no reason to refuse a frame", r)
	}
	return []byte(reasonText[r]), nil
}

// UnmarshalText is the inverse of MarshalText.
func (r *Reason) UnmarshalText(text []byte) error {
	for known := Garbage; known < reasons; known++ {
		if reasonText[known] == string(text) {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("%q is no reason to refuse a frame", text)
}
