package multiplex

import "testing"

// TestMannerAfterAResponse is the table of how a server names its answers: how it has named them so far, how it names
// one now, and whether it has given one without a name before.
func TestMannerAfterAResponse(t *testing.T) {
	forms := [...]idForm{textID, numberID, numberOfCall} // the columns
	for i, row := range []struct {
		manner               manner
		allNamed, hasUnnamed [len(forms)]manner // what follows
	}{
		{unknownManner,
			[...]manner{byText, byNumber, byNumberInCalls},
			[...]manner{noManner, noManner, noManner}},
		{noManner, // such a server has given an answer without a name
			[...]manner{noManner, noManner, noManner},
			[...]manner{noManner, noManner, noManner}},
		{byText, // find takes no number from such a server
			[...]manner{byText, byText, byText},
			[...]manner{byText, byText, byText}},
		{byNumber, // find takes no text from such a server, nor from that of the next row
			[...]manner{byNumber, byNumber, byNumberInCalls},
			[...]manner{byNumber, byNumber, byNumber}},
		{byNumberInCalls,
			[...]manner{byNumberInCalls, byNumberInCalls, byNumberInCalls},
			[...]manner{byNumberInCalls, byNumberInCalls, byNumberInCalls}},
	} {
		if int(row.manner) != i {
			t.Errorf("row %d is that of manner %v", i, row.manner)
		}
		for column, form := range forms {
			for unnamed, want := range map[bool]manner{false: row.allNamed[column], true: row.hasUnnamed[column]} {
				if got := row.manner.after(form, unnamed); got != want {
					t.Errorf("%v after %v, unnamed %t: %v, want %v", row.manner, form, unnamed, got, want)
				}
			}
		}
	}
}
