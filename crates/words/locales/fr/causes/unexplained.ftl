unexplained-title = Le tunnel est lent, et aucune des causes connues ne se montre
