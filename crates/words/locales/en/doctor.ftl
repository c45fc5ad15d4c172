# What the findings of several causes say.

doctor-watched = watched
doctor-way = { $from } to { $to }
doctor-on = { $what } on { $host }
