package toolsearch

import (
	"slices"
	"strings"
	"sync"
)

// meanings are words that people and servers use for the same thing, a group a line. A word may be in several. They are
// those of tools in general: what is done, and to what. Words of one product do not belong here.
const meanings = `create make new add start open begin generate
delete remove erase drop trash forget discard clear destroy
get read show view fetch retrieve see display load download
list show all every overview
search find look query lookup locate discover
update change edit modify alter patch adjust set replace
update close resolve reopen finish complete
update upgrade refresh sync
write save store put overwrite
append insert add attach extend
move rename relocate transfer
copy duplicate clone fork
send post publish submit write
answer reply respond
review approve accept reject
run execute trigger launch start call invoke
ask prompt elicitation question
relation link connect relate associate connection
compare diff difference
compress zip gzip archive
memory remember memorize recall note
observation fact note
knowledge information
comment say remark tell feedback
multiple several many batch bulk
info details metadata information
message text chat
directory folder subfolder subdirectory
file document
image picture photo screenshot media
media audio video sound
issue bug ticket problem defect
pr pull
mr merge
repository repo project
user person people member account profile
entity object thing
page note document wiki article
block paragraph
database table sheet
data database
property column field attribute
status check ci build test pipeline
commit history change
branch main master
thread conversation discussion reply
channel room
history recent log past
size length

organization org team company group
task todo job
environment env variable
sum total plus add
reaction emoji react
place location
distance far
elevation height altitude
direction route way
coordinate latitude longitude position geographic
label tag
release version
calendar event appointment meeting schedule
email mail
setting configuration option preference
error failure exception crash`

// synonyms returns the stems of words with one meaning, by the stem of each.
var synonyms = sync.OnceValue(func() map[string][]string { // a program that searches nothing has none
	all := make(map[string][]string)
	for group := range strings.Lines(meanings) {
		words := strings.Fields(group)
		for _, word := range words {
			for _, other := range words {
				if from, to := stem(word), stem(other); from != to && !slices.Contains(all[from], to) {
					all[from] = append(all[from], to)
				}
			}
		}
	}
	return all
})
